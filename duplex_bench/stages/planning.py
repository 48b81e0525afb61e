"""What a run would cost, as a range, before it is started."""

from dataclasses import dataclass

from duplex_bench.records.items import Track
from duplex_bench.stages.rollouts import listened_s, planned_rollouts, rollout_ledger, text_items, why_not
from duplex_bench.stages.stored_run import stored
from duplex_bench.stages.workspace import Workspace
from duplex_bench.statistics import minimum_detectable_difference
from duplex_bench.systems.card import SystemCard

# Core seconds per second of audio, rollout to words, low and high: measured on the demo on a 2-core machine, see
# docs/performance.md. Systems that no one has measured get the widest range.
COMPUTE_PER_AUDIO_S = {"policy": (0.01, 0.25), "hosted": (0.05, 0.4), "text": (0.01, 0.1), "full_duplex": (0.1, 3.0)}
# Before items exist: what a conversation point and a scene of the default sizes last, drain included (measured).
TYPICAL_ITEM_S = {"multiparty": 60.0, "conversation": 20.0}
# The spread of a difference of two rates over clusters, where nothing is known of it yet (ours).
ASSUMED_SD = 0.5


@dataclass(frozen=True, slots=True)
class Estimate:
    """Items of one track on one system, how many of them are already run, and what the others take.

    ``text_items`` are the turns of history of those that wait: some vendors charge for each.
    """

    items: int
    cached: int
    audio_minutes: float
    compute_low_s: float
    compute_high_s: float
    text_items: int = 0


def planned_items(workspace: Workspace, track: Track) -> int:
    """How many items the profile asks for, where they have not been made yet."""
    profile = workspace.profile
    if track == "multiparty":
        count = 2 * profile.multiparty.n_pairs
    else:
        curation = profile.conversation.curation
        most = profile.conversation.generator.n_sessions * curation.cap_per_kind
        count = sum(most if drawn is None else drawn for drawn in (curation.n_pause, curation.n_turn_end))
    return count if profile.limit is None else min(count, profile.limit)


def estimate(workspace: Workspace, track: Track, card: SystemCard) -> Estimate:
    """What running ``card`` on a track would take; exact counts once the items exist."""
    items = stored(workspace, track, "items")
    low, high = COMPUTE_PER_AUDIO_S[card.family]
    if track not in card.tracks:
        return Estimate(0, 0, 0.0, 0.0, 0.0)
    if items is None:
        count = planned_items(workspace, track)
        seconds = count * TYPICAL_ITEM_S[track]
        return Estimate(count, 0, seconds / 60, low * seconds, high * seconds)
    finished = rollout_ledger(workspace, track, card.name).finished()
    total = cached = texts = 0
    seconds = waiting_s = 0.0
    for one in planned_rollouts(workspace, items, card):
        if why_not(card, track, one.protocol) is not None:
            continue
        total += 1
        length_s = listened_s(one)
        seconds += length_s
        cached += one.rollout_key in finished
        if one.rollout_key not in finished:
            waiting_s += length_s
            texts += text_items(one) if card.provider else 0
    return Estimate(total, cached, seconds / 60, low * waiting_s, high * waiting_s, texts)


def detectable_difference(workspace: Workspace, track: Track) -> str:
    """In words, the smallest difference between two systems that the planned clusters can show."""
    items = stored(workspace, track, "items")
    if items is None:
        clusters = (
            workspace.profile.multiparty.n_pairs
            if track == "multiparty"
            else workspace.profile.conversation.generator.n_sessions
        )
    else:
        clusters = items["cluster"].n_unique()
    level = workspace.profile.statistics.level
    smallest = minimum_detectable_difference(clusters, ASSUMED_SD, level=level)
    return (
        f"{track}: {clusters} clusters; differences of rates below {100 * smallest:.0f} points would go unseen "
        f"(80 % power, spread {ASSUMED_SD} assumed)"
    )
