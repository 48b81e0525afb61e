"""The second judge's verdicts on recall beside the first's and the strict matcher's (P2 table 12)."""

import polars as pl

from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.reporting.tables.conversation_recall import JUDGED, STRICT
from duplex_bench.stages.judges import SECOND
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import read_frame

_SCHEMA = {
    "kind": pl.String, "system": pl.String, "judge": pl.String, "second": pl.String, "n": pl.Int64,
    "judged": pl.Float64, "second_judged": pl.Float64, "strict": pl.Float64, "judges_agree": pl.Float64,
    "second_agrees_with_strict": pl.Float64, "second_only": pl.Int64, "strict_only": pl.Int64,
}  # fmt: skip


def second_judge_table(workspace: Workspace, tables: TrackTables) -> Table | None:
    """Three scorers over the same rollouts, pooled over history lengths; None where no second judge gave a verdict.

    ``second_only`` and ``strict_only`` count rollouts that only one of the two credits, as the paper does for its
    original judge.
    """
    if tables.track != "conversation":
        return None
    second = _second(workspace, tables)
    if second is None:
        return None
    values = {
        name: tables.measurements.filter((pl.col("metric") == metric) & pl.col("value").is_not_null()).select(
            "system", "condition", "rollout_key", "item_id", pl.col("value").alias(name)
        )
        for name, metric in (("judged", JUDGED), ("strict", STRICT))
    }
    on = ["system", "condition", "rollout_key", "item_id"]
    both = values["judged"].join(values["strict"], on=on).join(second, on=["system", "rollout_key", "item_id"])
    rows = []
    for (kind, system), part in both.sort("condition", "system").group_by("condition", "system", maintain_order=True):
        first, other, strict = (part[name] == 1.0 for name in ("judged", "second", "strict"))
        judges = tables.judgements.filter(pl.col("system") == system)["judge"].unique().sort().to_list()
        rows.append(
            {"kind": kind, "system": system, "judge": ", ".join(judges), "second": part["judge"][0], "n": part.height,
             "judged": first.mean(), "second_judged": other.mean(), "strict": strict.mean(),
             "judges_agree": (first == other).mean(), "second_agrees_with_strict": (other == strict).mean(),
             "second_only": int((other & ~strict).sum()), "strict_only": int((~other & strict).sum())}
        )  # fmt: skip
    if not rows:
        return None
    return Table(
        "conversation-recall-second-judge",
        "Conversation: recall under two judges and the strict matcher",
        "Rollouts with an answer on which all three decided; history lengths pooled. The second judge scores nothing "
        "else.",
        pl.DataFrame(rows, schema=_SCHEMA),
    )


def _second(workspace: Workspace, tables: TrackTables) -> pl.DataFrame | None:
    frames = []
    for system in tables.rollouts["system"].unique().sort():
        key = workspace.table_key((tables.track, SECOND), system)
        if workspace.store.exists(key):
            frames.append(read_frame(workspace.store, key))
    if not frames:
        return None
    decided = pl.concat(frames).filter((pl.col("rubric") == "recall_correctness") & pl.col("verdict").is_not_null())
    return decided.select(
        "system", "rollout_key", "item_id", "judge",
        (pl.col("verdict") == "correct").cast(pl.Float64).alias("second"),
    )  # fmt: skip
