import numpy as np
import polars as pl
import pytest

from duplex_bench.conversation.sensitivity import StoredPause
from duplex_bench.reporting.inputs import Table
from duplex_bench.stages.boundary_error import measured_errors, outcomes_under
from duplex_bench.stages.recognition import EDGES
from duplex_bench.stages.summary import store_tables
from duplex_bench.stages.workspace import open_workspace
from duplex_bench.storage.frames import write_frame

pytestmark = pytest.mark.unit


def pause(gate_s, words_s=None, pause_s=(2.0, 3.0)):
    return StoredPause("i", "c", pause_s, 0.5, gate_s, gate_s if words_s is None else words_s)


def test_a_takeover_depends_on_where_the_pause_really_ended():
    spoken = pause([(2.9, 4.0)])
    # The label is late by what the error says: 200 ms late, the pause ended at 2.8 s, before anything was said.
    errors_s = np.array([[0.0, 0.0], [0.0, 0.2], [0.0, -0.2], [0.0, 1.5]])
    assert outcomes_under(spoken, errors_s) == pytest.approx([1.0, 0.0, 1.0, np.nan], nan_ok=True)


def test_audio_without_words_and_silence_take_nothing():
    none = np.zeros((1, 2))
    assert outcomes_under(pause([(2.2, 2.6)], []), none) == [0.0]
    assert outcomes_under(pause([]), none) == [0.0]


def test_without_a_measurement_there_is_no_error_to_draw_from(tmp_path):
    assert measured_errors(open_workspace("demo", tmp_path)) is None


def test_edges_of_known_utterances_stand_for_boundaries(tmp_path):
    workspace = open_workspace("demo", tmp_path)
    edges = pl.DataFrame({"condition": ["as it is"] * 25, "onset_s": [0.02] * 25, "offset_s": [0.05] * 25})
    stored = store_tables(workspace, [Table(EDGES, "", "", edges)], {}).frame
    write_frame(workspace.store, workspace.table_key(("results", "recogniser_quality"), None), stored)
    found = measured_errors(workspace)
    assert found.errors_s[0] == pytest.approx([0.05, 0.02])
    assert "voice detector" in found.truth


def test_reviewed_sessions_come_first(tmp_path):
    workspace = open_workspace("demo", tmp_path)
    rows = [
        {"session_id": "s", "speaker": "left", "kind": "pause", "start_s": 10.0 * n, "end_s": 10.0 * n + 1.0,
         "rule": "r", "confidence": 1.0, "source": "engine"}
        for n in range(30)
    ]  # fmt: skip
    engine = pl.DataFrame(rows)
    people = engine.with_columns(pl.col("start_s") - 0.1, pl.col("end_s") + 0.2, pl.lit("review").alias("source"))
    for name, frame in (("engine_labels", engine), ("labels", people)):
        write_frame(workspace.store, workspace.table_key(("conversation", name), None), frame)
    found = measured_errors(workspace)
    assert len(found.errors_s) == 30
    assert found.errors_s[0] == pytest.approx([0.1, -0.2])
    assert "people" in found.truth
