"""What people said about single windows, for the report: scores on accepted points, and listeners as metrics."""

import os
from dataclasses import asdict
from typing import Final

import polars as pl

from duplex_bench.records.tables import MEASUREMENTS
from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.review.accepted import PointScore, accepted_rows
from duplex_bench.review.errors import DatabaseLostError
from duplex_bench.review.judgements import JudgementLog, ListenerAnswer, WindowCheck
from duplex_bench.review.listeners import human_rows, human_scores
from duplex_bench.review.store import OPEN, ReviewStore
from duplex_bench.stages import scoring
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.frames import read_frame

TRACK: Final = "conversation"
DATABASE = "DUPLEX_BENCH_REVIEW_DATABASE"
_ACCEPTED = {
    "system": pl.String, "condition": pl.String, "metric": pl.String, "n_all": pl.Int64, "estimate_all": pl.Float64,
    "n_accepted": pl.Int64, "estimate_accepted": pl.Float64, "difference": pl.Float64, "n_rejected": pl.Int64,
    "n_split": pl.Int64, "n_open": pl.Int64,
}  # fmt: skip
_LISTENERS = {
    "condition": pl.String, "metric": pl.String, "n_people": pl.Int64, "n_windows": pl.Int64,
    "n_windows_of_two": pl.Int64, "n_answers": pl.Int64, "center": pl.Float64, "people_differ": pl.Float64,
    "sd_between_people": pl.Float64, "sd_between_windows": pl.Float64,
}  # fmt: skip


def database_url(workspace: Workspace, given: str | None = None) -> str:
    """Where the review's log lies: what is given, what the environment names, else a file in the data folder."""
    return given or os.environ.get(DATABASE) or f"sqlite:///{workspace.data / 'review.sqlite'}"


def point_scores(measurements: pl.DataFrame) -> list[PointScore]:
    """Scores of pauses and turn ends that have a value, with how their metric is summed up."""
    statistics = {card.id: card.statistic for card in scoring.metric_cards(TRACK)}
    scored = measurements.filter(pl.col("value").is_not_null() & pl.col("condition").is_in(["pause", "turn_end"]))
    return [
        PointScore(
            row["item_id"], row["system"], row["condition"], row["metric"], statistics[row["metric"]], row["value"]
        )
        for row in scored.iter_rows(named=True)
        if row["metric"] in statistics
    ]


def stored_scores(workspace: Workspace) -> list[PointScore]:
    """Scores of every system that this profile has measured here."""
    folder = workspace.table_key((TRACK, "measurements"), "x").rsplit("/", 1)[0]
    keys = [key for key in workspace.store.keys(folder) if key.endswith(".parquet")]
    frames = [read_frame(workspace.store, key).select(list(MEASUREMENTS)) for key in sorted(keys)]
    return point_scores(pl.concat(frames)) if frames else []


def state(workspace: Workspace) -> str:
    """What people have said about windows and labels so far, by content; empty where there is no log, or none can be
    read. Of labels, copies that were handed in count: a draft is no answer.
    """
    log = log_of(workspace)
    if log is None or isinstance(log, str):
        return ""
    copies = ReviewStore(database_url(workspace)).copies()
    handed_in = [(one.copy_id, one.version, one.status) for one in copies if one.status not in OPEN]
    return digest_value("windows", *log, *([sorted(handed_in)] if handed_in else []))


def log_of(workspace: Workspace) -> tuple[list[WindowCheck], list[ListenerAnswer]] | str | None:
    """Verdicts and answers; why they could not be read; None where nobody has opened a review."""
    url = database_url(workspace)
    if url.startswith("sqlite") and DATABASE not in os.environ and not (workspace.data / "review.sqlite").is_file():
        return None
    try:
        log = JudgementLog(ReviewStore(url))
        return log.checks(), log.answers()
    except (DatabaseLostError, ValueError) as error:
        return str(error)


def human_tables(workspace: Workspace, track: TrackTables) -> tuple[list[Table], str]:
    """The tables that the review's log has rows for, and a note where the log could not be read."""
    if track.track != TRACK:
        return [], ""
    log = log_of(workspace)
    if log is None:
        return [], ""
    if isinstance(log, str):
        return [], f"What people said about windows is not shown: the review's database could not be read ({log})."
    checks, answers = log
    pauses_s = {
        row["item_id"]: row["pause_s"] if row["condition"] == "pause" else None
        for row in track.items.filter(pl.col("condition").is_in(["pause", "turn_end"]))
        .with_columns(pl.col("reference").str.json_path_match("$.attributes.pause_s").cast(pl.Float64).alias("pause_s"))
        .iter_rows(named=True)
    }
    checks = [check for check in checks if check.point_id in pauses_s]
    accepted = [asdict(row) for row in accepted_rows(checks, point_scores(track.measurements))]
    listened = [asdict(row) for row in human_rows(human_scores(answers, pauses_s))]
    people = len({check.person for check in checks})
    who = f"{people} {'person' if people == 1 else 'people'}"
    made = [
        Table(
            "conversation-accepted",
            "Conversation: scores on the windows that people accepted",
            f"Window check by {who}: a window is accepted by two and rejected by none, split if they "
            "disagree, open with fewer than two verdicts. Verdicts and reasons are in the review's log.",
            pl.DataFrame(accepted, schema=_ACCEPTED),
        ),
        Table(
            "conversation-listeners",
            "Conversation: what listeners would have done",
            "People who heard up to the boundary and nothing after it, scored by the metrics of systems. center: mean "
            "of a share, median of seconds. people_differ: share of pairs of people on one window who do not say the "
            "same. sd_between_people: what another person moves a window's value by, beside sd_between_windows; set "
            "it against a system's sd_between_runs.",
            pl.DataFrame(listened, schema=_LISTENERS),
        ),
    ]
    return [table for table in made if table.frame.height], ""
