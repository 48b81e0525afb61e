"""One short rollout of a system as a check: does it connect, does it answer, how late, and for what money?"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.types import OpenRequest
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout import frame_stepped, realtime
from duplex_bench.rollout.listener import RolloutResult
from duplex_bench.rollout.outputs import audible_span_s
from duplex_bench.rollout.pacing import PacingRule
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.speech import engines
from duplex_bench.stages.conformance import QUESTION, VOICE
from duplex_bench.stages.workspace import Workspace
from duplex_bench.systems.adapters.prices import usd_per_minute
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.environments import open_system
from duplex_bench.textmodels.prices import price_of
from duplex_bench.textmodels.spend import SpendLedger, SpentCall

# The question lasts 2 s; a reply is heard for 8 s at most.
_PLAN = StreamPlan(0.0, stop_after_silence_s=1.0, cap_s=8.0, reply_due=True)
_LONGEST_MIN = 12.0 / 60
# Lateness is told, not judged: whether the system answers is the question here.
_SETTINGS = realtime.RealtimeSettings(PacingRule(math.inf, math.inf))


@dataclass(frozen=True, slots=True)
class LiveCheck:
    """What one rollout showed; ``usd`` is None where nothing was paid, or the price is not known."""

    outcome: Outcome
    reason: str
    latency_s: float | None
    words: str
    usd: float | None
    priced_on: str
    model_echo: str
    open_s: float | None
    round_trip_s: float | None
    late_p99_ms: float | None


def expected_usd(card: SystemCard) -> tuple[float, float] | None:
    """What the check will cost, low and high; (0, 0) without a provider, None where the price is not known."""
    if not card.provider:
        return 0.0, 0.0
    rates = usd_per_minute(card.model_id)
    return None if rates is None else (rates[0] * _LONGEST_MIN, rates[1] * _LONGEST_MIN)


def live_check(workspace: Workspace, card: SystemCard) -> LiveCheck:
    """Ask the system of ``card`` one spoken question and hear what it says. What was paid is in the spend ledger.

    Raises:
        SystemStartError: The system could not be made.
        BudgetError: The profile's budget does not allow it.
    """
    clip = engines.text_to_speech("embedded", workspace.store).speak(QUESTION, VOICE)
    with (
        _paid(workspace, card) as noted,
        open_system(card, store=workspace.store, cache_folder=workspace.data / "cache") as system,
    ):
        request = OpenRequest(seed=0, stimulus_id="live-check")
        if isinstance(system, PushSystem):
            result = realtime.run(system, request, clip.samples, clip.sample_rate_hz, _PLAN, _SETTINGS)
        else:
            result = frame_stepped.run(system, request, clip.samples, clip.sample_rate_hz, _PLAN)
        found = _read(result, card)
        noted.append(found)
    return found


def _read(result: RolloutResult, card: SystemCard) -> LiveCheck:
    closing = _first(result, "close")
    price = price_of(card.model_id) if card.provider else None
    trips = [trip for trip in closing.get("round_trip_s", ()) if trip is not None]
    pacing = _first(result, "pacing").get("sends", {})
    after = result.listener[round(result.input_s * result.sample_rate_hz) :]
    start_s, stop_s = audible_span_s(after, result.sample_rate_hz) if len(after) else (0.0, 0.0)
    return LiveCheck(
        result.outcome,
        result.reason,
        start_s if stop_s > start_s else None,
        " ".join("".join(str(event.get("text")) for event in result.events if event["kind"] == "text").split()),
        closing.get("cost_usd") if card.provider else None,
        "" if price is None else price.read_on.isoformat(),
        str((closing.get("echo") or {}).get("model") or ""),
        _first(result, "opened").get("took_s"),
        float(np.min(trips)) if trips else None,
        pacing["p99_ms"] if pacing.get("n") else None,
    )


def _first(result: RolloutResult, kind: str) -> dict[str, Any]:
    return next((event for event in result.events if event["kind"] == kind), {})


@contextmanager
def _paid(workspace: Workspace, card: SystemCard) -> Iterator[list[LiveCheck]]:
    done: list[LiveCheck] = []
    expected = expected_usd(card)
    if not card.provider:
        yield done
        return
    with SpendLedger(workspace.store, workspace.profile.rollout.budget_usd) as spend:
        reserved = spend.reserve(None if expected is None else expected[1], f"{card.name}: one check")
        try:
            yield done
        finally:
            for found in done:
                call = SpentCall("live check", card.name, card.model_id, "live-check", None, None, found.usd, None)
                spend.settle(None, call)
            spend.release(reserved)
