"""Windows that two people rejected in the window check: they leave the draw, and the next by hash takes their place."""

from typing import Final

import polars as pl

from duplex_bench.review.agreement import window_status
from duplex_bench.review.judgements import WindowCheck
from duplex_bench.stages import human_windows
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import read_frame, write_frame

SCHEMA: Final = {"point_id": pl.String, "reason": pl.String}
_KEY: Final = (human_windows.TRACK, "rejected_windows")


def rejected_now(workspace: Workspace) -> dict[str, str]:
    """Why two people, and nobody against them, rejected a window, by point id, as the review's log says now.

    Raises:
        ValueError: the log cannot be read; a draw without it would bring rejected windows back.
    """
    if not workspace.profile.conversation.curation.replace_rejected:
        return {}
    log = human_windows.log_of(workspace)
    if isinstance(log, str):
        raise ValueError(
            f"which windows people rejected cannot be read from the review's database ({log}): make it reachable, or "
            "set conversation.curation.replace_rejected = false to draw without asking"
        )
    by_point: dict[str, list[WindowCheck]] = {}
    for check in log[0] if log else ():
        by_point.setdefault(check.point_id, []).append(check)
    return {
        point_id: "; ".join(sorted({check.reason.strip() for check in checks}))
        for point_id, checks in sorted(by_point.items())
        if window_status(checks, point_id) == "rejected"
    }


def keep(workspace: Workspace, rejected: dict[str, str]) -> None:
    """Note the rejections that a draw was made with, so that its funnel can be told later."""
    frame = pl.DataFrame(list(rejected.items()), schema=SCHEMA, orient="row")
    write_frame(workspace.store, workspace.table_key(_KEY, None), frame)


def kept(workspace: Workspace) -> dict[str, str]:
    """The rejections that the stored points were drawn with."""
    key = workspace.table_key(_KEY, None)
    return dict(read_frame(workspace.store, key).iter_rows()) if workspace.store.exists(key) else {}
