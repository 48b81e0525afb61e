"""The conversation track in one workspace, made anew as often as asked after reviews and window checks."""

import json

import polars as pl

from duplex_bench.stages import conversation, evaluation
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.systems.card import SystemCard

TABLE = {
    "name": "reviewed",
    "seed": 1,
    "multiparty": {"grammar": {"n_pairs": 1, "seed": 3}},
    "conversation": {
        "generator": {"n_sessions": 3, "seed": 5, "minutes": 1.2, "sample_rate_hz": 24_000},
        "corpus": {"liveliness_top_share": 1.0},
        "curation": {"n_pause": 3, "n_turn_end": 3},
    },
    "rollout": {"protocols": {"turn_end_cap_s": 4.0}},
    "statistics": {"n_resamples": 50},
}


def plain(text):
    """A stimulus as what is heard and read, whatever file it lies in."""
    told = json.loads(text)
    for name in ("live", "history_user", "history_assistant"):
        if told[name] is not None:
            told[name] = (told[name]["content"], told[name]["sample_rate_hz"])
    return json.dumps(told, sort_keys=True)


class Chain:
    """The conversation track in one workspace, made anew as often as asked."""

    def __init__(self, workspace, adapter):
        self.workspace = workspace
        self.card = SystemCard(name="early", title="early", family="policy", adapter=adapter, licence="test",
                               settings={"at_s": [2.0, 9.0, 20.0]})  # fmt: skip
        self.sessions = conversation.lively_sessions(workspace).frame
        self.filled = conversation.gap_fill(workspace, self.sessions).frame
        self.engine = conversation.engine_labels(workspace, self.sessions, self.filled).frame

    def items(self):
        labels = conversation.labels(self.workspace, self.engine).frame
        found = conversation.candidates(self.workspace, self.sessions, self.filled, labels).frame
        self.points = conversation.points(self.workspace, found).frame
        made = conversation.items(self.workspace, self.sessions, self.filled, labels, self.points)
        return made.frame

    def measure(self, items):
        given = ("conversation", items)
        rolled = run_rollouts(self.workspace, *given, self.card)
        heard = evaluation.activity(self.workspace, "conversation", rolled.frame, "early")
        said = evaluation.words(self.workspace, "conversation", rolled.frame, "early")
        frames = (rolled.frame, heard.frame, said.frame)
        judged = evaluation.judgements(self.workspace, *given, *frames, "early")
        return rolled, evaluation.measurements(self.workspace, *given, *frames, judged.frame, "early")

    def review(self, session, edit, status="approved"):
        rows = self.engine.filter(pl.col("session_id") == session)
        rows = rows.select("speaker", "kind", "start_s", "end_s").to_dicts()
        edit(rows)
        told = {"session_id": session, "status": status, "approved_by": "me", "labels": rows}
        self.workspace.reviews_folder.mkdir(parents=True, exist_ok=True)
        (self.workspace.reviews_folder / f"{session}.json").write_text(json.dumps(told))


def by_hand(before, after):
    """Change of every item, from what is written in the two tables and nothing else."""
    old, new = ({row["item_id"]: row for row in frame.iter_rows(named=True)} for frame in (before, after))
    told = {}
    for item_id in old.keys() | new.keys():
        if item_id not in new:
            told[item_id] = "left"
        elif item_id not in old:
            told[item_id] = "drawn"
        elif plain(old[item_id]["stimulus"]) != plain(new[item_id]["stimulus"]):
            told[item_id] = "stimulus_changed"
        else:
            alike = json.loads(old[item_id]["reference"]) == json.loads(new[item_id]["reference"])
            told[item_id] = "unchanged" if alike else "rescored"
    return told


def seen(items):
    return {plain(text) for text in items["stimulus"]}


def scored_on(items, rollouts):
    """Everything that a score of an item rests on: its reference, and what a listener heard of its rollout."""
    heard = {
        row["item_id"]: (row["listener_audio"], row["outcome"], row["reason"], row["timeline_s"])
        for row in rollouts.iter_rows(named=True)
    }
    return {
        (
            row["item_id"],
            row["condition"],
            json.dumps(json.loads(row["reference"]), sort_keys=True),
            heard[row["item_id"]],
        )
        for row in items.iter_rows(named=True)
    }
