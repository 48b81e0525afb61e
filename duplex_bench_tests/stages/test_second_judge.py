"""The second judge beside the first, in a table: what both decided, and what one or neither did."""

import polars as pl
import pytest

from duplex_bench.multiparty.transcript_reference import SYSTEM as READER
from duplex_bench.records import tables as schemas
from duplex_bench.reporting.inputs import SCHEMAS, TrackTables
from duplex_bench.reporting.public_filter import public_table
from duplex_bench.stages import scoring
from duplex_bench.stages.judges import SECOND
from duplex_bench.stages.second_judge import judges_agree
from duplex_bench.statistics import wilson_interval
from duplex_bench.storage.frames import write_frame

pytestmark = pytest.mark.unit

ANSWER, SIGN = "answer_correctness", "acknowledgement"


def verdicts(judge, given, system="one"):
    """A row a verdict, by rubric; the windows of both judges are the same."""
    return pl.DataFrame(
        [
            {"judgement_id": f"{judge}{rubric}{n}", "rollout_key": f"r{n}", "item_id": f"i{n}", "window_id": "w",
             "system": system, "rubric": rubric, "rubric_version": 1, "judge": judge, "verdict": verdict,
             "reason": "", "raw": ""}
            for rubric, of_rubric in given.items()
            for n, verdict in enumerate(of_rubric)
        ],
        schema=dict(schemas.JUDGEMENTS),
    )  # fmt: skip


@pytest.fixture
def workspace(small_workspace, tmp_path):
    return small_workspace(tmp_path)


def track_of(first):
    frames = {name: pl.DataFrame(schema=dict(schema)) for name, schema in SCHEMAS.items()}
    ran = pl.DataFrame([dict.fromkeys(schemas.ROLLOUTS) | {"system": "one"}], schema=dict(schemas.ROLLOUTS))
    given = {**frames, "rollouts": ran, "judgements": first}
    return TrackTables(track="multiparty", cards=scoring.metric_cards("multiparty"), **given)


def kept(workspace, second, system="one"):
    write_frame(workspace.store, workspace.table_key(("multiparty", SECOND), system), second)


def test_agreement_is_over_what_both_decided_and_the_rest_is_counted(workspace):
    good, bad = "correct", "incorrect"
    first = verdicts("a", {ANSWER: [good, good, bad, bad, None, good, None], SIGN: ["intrusion"] * 3})
    assert judges_agree(workspace, track_of(first)) is None
    kept(workspace, verdicts("b", {ANSWER: [good, bad, bad, bad, good, None, None], SIGN: ["intrusion"] * 3}))
    table = judges_agree(workspace, track_of(first))
    rows = {row["rubric"]: row for row in table.frame.to_dicts()}
    answers = rows[ANSWER]
    assert (answers["n_both"], answers["n_agree"], answers["share"]) == (4, 3, 0.75)
    assert (answers["low"], answers["high"]) == pytest.approx(tuple(wilson_interval(3, 4)))
    assert answers["kappa"] == pytest.approx(0.5)
    assert (answers["only_first"], answers["only_second"], answers["neither"]) == (1, 1, 1)
    assert (answers["judge"], answers["second"]) == ("a", "b")
    # One verdict throughout: agreement by chance is certain, so that kappa says nothing.
    assert (rows[SIGN]["share"], rows[SIGN]["kappa"]) == (1.0, None)


def test_nothing_that_both_decided_is_no_share(workspace):
    kept(workspace, verdicts("b", {ANSWER: [None, "correct"]}))
    (row,) = judges_agree(workspace, track_of(verdicts("a", {ANSWER: ["correct", None]}))).frame.to_dicts()
    assert (row["n_both"], row["share"], row["low"], row["kappa"]) == (0, None, None, None)


def test_a_reader_of_the_transcript_is_left_out_and_the_table_may_be_published(workspace):
    kept(workspace, verdicts("b", {ANSWER: ["correct"]}, READER), READER)
    assert judges_agree(workspace, track_of(verdicts("a", {ANSWER: ["correct"]}))) is None
    kept(workspace, verdicts("b", {ANSWER: ["correct"]}))
    table = judges_agree(workspace, track_of(verdicts("a", {ANSWER: ["correct"]})))
    assert public_table(table).frame.equals(table.frame)
