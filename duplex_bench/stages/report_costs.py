"""What a run took: dollars by role and system, machine time by system, each beside what was estimated; and prices."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import polars as pl

from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.stages.planning import COMPUTE_PER_AUDIO_S
from duplex_bench.stages.workspace import Workspace
from duplex_bench.systems.adapters.prices import usd_per_minute
from duplex_bench.systems.card import SystemCard
from duplex_bench.textmodels.prices import price_of, price_table
from duplex_bench.textmodels.spend import SpendLedger, SpentCall

Row = dict[str, Any]
Number = TypeVar("Number", int, float)

SESSIONS_ROLE = "rollout"
_SPEND_SCHEMA = {
    "role": pl.String, "subject": pl.String, "model": pl.String, "calls": pl.Int64, "input_tokens": pl.Int64,
    "output_tokens": pl.Int64, "without_tokens": pl.Int64, "usd": pl.Float64, "without_price": pl.Int64,
}  # fmt: skip
_SYSTEMS_SCHEMA = {
    "system": pl.String, "track": pl.String, "rollouts": pl.Int64, "audio_minutes": pl.Float64,
    "compute_low_s": pl.Float64, "compute_high_s": pl.Float64, "compute_s": pl.Float64, "wall_s": pl.Float64,
    "realtime_factor": pl.Float64, "usd_low": pl.Float64, "usd_high": pl.Float64,
}  # fmt: skip
_PRICES_SCHEMA = {
    "model": pl.String, "used": pl.Boolean, "text_input": pl.Float64, "text_output": pl.Float64,
    "audio_input": pl.Float64, "audio_input_cached": pl.Float64, "audio_output": pl.Float64, "audio": pl.Float64,
    "read_on": pl.String, "source": pl.String,
}  # fmt: skip


def cost_tables(workspace: Workspace, tracks: Sequence[TrackTables], cards: Sequence[SystemCard]) -> list[Table]:
    """Spend, systems with estimate against actual, and prices; ids begin with ``costs-``."""
    calls = list(SpendLedger(workspace.store).calls())
    return [spend(calls), of_systems(tracks, {card.name: card for card in cards}, calls), prices(calls, cards)]


def spend(calls: Sequence[SpentCall]) -> Table:
    """Dollars by role, subject (the system that was run or judged) and model. A call without a price has no dollars."""
    groups: dict[tuple[str, str, str], list[SpentCall]] = defaultdict(list)
    for call in calls:
        groups[call.role, call.subject, call.model].append(call)
    rows = [
        {
            "role": role,
            "subject": subject or None,
            "model": model,
            "calls": len(made),
            "input_tokens": _known([call.input_tokens for call in made]),
            "output_tokens": _known([call.output_tokens for call in made]),
            "without_tokens": sum(call.input_tokens is None or call.output_tokens is None for call in made),
            "usd": _known([call.usd for call in made]),
            "without_price": sum(call.usd is None for call in made),
        }
        for (role, subject, model), made in sorted(groups.items())
    ]
    total = _known([call.usd for call in calls])
    told = (
        f"{len(calls)} paid calls and sessions on this data folder, by any run of it, "
        f"{'none of known price' if total is None else f'{total:.4f} US dollars'}. "
        "Where a price is not known, dollars are missing, never zero; so are tokens that a server did not tell. Sums "
        "are of what is known: without_price and without_tokens count the rest."
        if calls
        else "No paid call was made on this data folder: every engine of this run is embedded."
    )
    return Table("costs-spend", "Spend by role and system", told, pl.DataFrame(rows, schema=_SPEND_SCHEMA))


def of_systems(tracks: Sequence[TrackTables], cards: Mapping[str, SystemCard], calls: Sequence[SpentCall]) -> Table:
    """Machine time of each system's rollouts beside the range that ``plan`` gives for as much audio.

    Args:
        tracks: for their rollouts.
        cards: by name: the family decides the range of compute, the model that of dollars.
        calls: what was paid; sessions are told apart by system, not by track.
    """
    rows: list[Row] = []
    for track in tracks:
        for (system,), mine in track.rollouts.sort("system").group_by("system", maintain_order=True):
            card = cards.get(str(system))
            audio_s = float(mine["timeline_s"].fill_null(0.0).sum())
            compute_s = float(mine["compute_s"].fill_null(0.0).sum())
            low, high = COMPUTE_PER_AUDIO_S[card.family] if card else (None, None)
            rates = usd_per_minute(card.model_id) if card and card.provider else None
            rows.append(
                {
                    "system": str(system),
                    "track": track.track,
                    "rollouts": mine.height,
                    "audio_minutes": audio_s / 60,
                    "compute_low_s": None if low is None else low * audio_s,
                    "compute_high_s": None if high is None else high * audio_s,
                    "compute_s": compute_s,
                    "wall_s": float(mine["wall_s"].fill_null(0.0).sum()),
                    "realtime_factor": compute_s / audio_s if audio_s else None,
                    "usd_low": rates[0] * audio_s / 60 if rates else None,
                    "usd_high": rates[1] * audio_s / 60 if rates else None,
                }
            )
    paid = _known([call.usd for call in calls if call.role == SESSIONS_ROLE])
    dollars = "no session was paid for" if paid is None else f"sessions were paid {paid:.4f} US dollars, see above"
    return Table(
        "costs-systems",
        "Estimate and actual by system",
        f"n = {sum(row['rollouts'] for row in rows)} rollouts. Low and high: what plan gives for as much audio, "
        "rollout to words; compute: seconds the rollouts themselves took, so that it may lie below low: systems "
        "that share a recogniser or a voice find in the cache what another of them had done, and the first one run has "
        "the whole of it. Realtime factor: compute to audio. Dollars low and high: a vendor's sessions of this length; "
        f"{dollars}.",
        pl.DataFrame(rows, schema=_SYSTEMS_SCHEMA),
    )


def prices(calls: Sequence[SpentCall], cards: Sequence[SystemCard]) -> Table:
    """The price table of this version, each row with the day it was read and where; models of this run are marked."""
    paid = {call.model.rsplit("/", 1)[-1] for call in calls}
    used = {id(price) for model in paid for price in [price_of(model)] if price is not None}
    rows = [
        {
            "model": ", ".join(price.models),
            "used": id(price) in used,
            "read_on": price.read_on.isoformat(),
            **{
                name: getattr(price, name)
                for name in _PRICES_SCHEMA
                if name in type(price).model_fields and name != "read_on"
            },
        }
        for price in price_table()
    ]
    unknown = sorted({card.model_id for card in cards if card.provider and price_of(card.model_id) is None})
    more = f" No price is known for {', '.join(unknown)}." if unknown else ""
    return Table(
        "costs-prices",
        "Prices",
        "US dollars: a million tokens, or a minute of session (audio). Prices change: the day is when each was read. "
        f"used: by a paid call on this data folder.{more}",
        pl.DataFrame(rows, schema=_PRICES_SCHEMA),
    )


def _known(numbers: Sequence[Number | None]) -> Number | None:
    known = [one for one in numbers if one is not None]
    return sum(known) if known else None
