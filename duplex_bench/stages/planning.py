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
# Before items exist: what a conversation point lasts, drain included (measured); what a scene lasts by its turns, and
# its preamble and end (ours: fits the demo's scenes, 60 s in all, and P1's, whose conversations are 100 s).
TYPICAL_POINT_S = 20.0
TURN_S = 6.25
SCENE_AROUND_S = 10.0
# Conversations that P2 kept of its corpus, and those of them that hold a fact to be asked about.
P2_SESSIONS = 176
P2_WITH_FACT = 46
# Turns of history that a point begins with, at most: P2's median conversation, its cap of 164 s.
P2_TURNS_PER_MIN = 9.4
P2_HISTORY_MIN = 164 / 60
# The spread of a difference of two rates over clusters, where nothing is known of it yet (ours).
ASSUMED_SD = 0.5


@dataclass(frozen=True, slots=True)
class Estimate:
    """Items of one track on one system, how many of them are already run, and what the others take.

    ``text_items`` are the turns of history of those that wait: some vendors charge for each. ``live_s`` and
    ``listened_s`` are the audio of those that wait, what is streamed and the longest that may be listened to.
    """

    items: int
    cached: int
    audio_minutes: float
    compute_low_s: float
    compute_high_s: float
    text_items: int = 0
    live_s: float = 0.0
    listened_s: float = 0.0


def planned_items(workspace: Workspace, track: Track) -> int:
    """How many items the profile asks for, at most, where they have not been made yet."""
    profile = workspace.profile
    if track == "multiparty":
        count = 2 * profile.multiparty.n_pairs
    else:
        curation, recall = profile.conversation.curation, profile.conversation.recall
        sessions = planned_sessions(workspace)
        of_each_kind = sessions * curation.cap_per_kind
        drawn = [(curation.n_pause, of_each_kind), (curation.n_turn_end, of_each_kind)]
        if recall.enabled:
            asked = sessions * len(recall.lengths_s)
            # Not every real conversation holds a fact that can be asked about.
            with_fact = asked if _generated(workspace) else round(asked * P2_WITH_FACT / P2_SESSIONS)
            drawn += [(recall.n_conversation_recall, with_fact), (recall.n_fact_recall, asked)]
        count = sum(most if wanted is None else min(wanted, most) for wanted, most in drawn)
    return count if profile.limit is None else min(count, profile.limit)


def planned_sessions(workspace: Workspace) -> int:
    """How many conversations there will be, before they are read: of a real corpus, as many as P2 kept."""
    return workspace.profile.conversation.generator.n_sessions if _generated(workspace) else P2_SESSIONS


def _generated(workspace: Workspace) -> bool:
    return workspace.profile.conversation.corpus.kind == "synthetic"


def _typical_s(workspace: Workspace, track: Track) -> float:
    if track == "conversation":
        return TYPICAL_POINT_S
    size = workspace.profile.multiparty.grammar.size
    # Request and question stand beside the turns that call for silence; some turns go on.
    turns = (size.silence_turns_mean + 2) * (1 + size.elaborations_mean / 3)
    return SCENE_AROUND_S + TURN_S * turns


def _typical_history(workspace: Workspace) -> float:
    generator = workspace.profile.conversation.generator
    minutes = min(P2_HISTORY_MIN, generator.minutes) if _generated(workspace) else P2_HISTORY_MIN
    return P2_TURNS_PER_MIN * minutes


def estimate(workspace: Workspace, track: Track, card: SystemCard) -> Estimate:
    """What running ``card`` on a track would take; exact counts once the items exist."""
    items = stored(workspace, track, "items")
    low, high = COMPUTE_PER_AUDIO_S[card.family]
    if track not in card.tracks:
        return Estimate(0, 0, 0.0, 0.0, 0.0)
    if items is None:
        count = planned_items(workspace, track) * workspace.profile.rollout.repeats
        seconds = count * _typical_s(workspace, track)
        texts = round(count * _typical_history(workspace)) if card.provider and track == "conversation" else 0
        return Estimate(count, 0, seconds / 60, low * seconds, high * seconds, texts, seconds, seconds)
    finished = rollout_ledger(workspace, track, card.name).finished()
    total = cached = texts = 0
    seconds = waiting_s = live_s = 0.0
    for one in planned_rollouts(workspace, items, card):
        if why_not(card, track, one.protocol) is not None:
            continue
        total += 1
        length_s = listened_s(one)
        seconds += length_s
        cached += one.rollout_key in finished
        if one.rollout_key not in finished:
            waiting_s += length_s
            live_s += one.live_s
            texts += text_items(one) if card.provider else 0
    return Estimate(total, cached, seconds / 60, low * waiting_s, high * waiting_s, texts, live_s, waiting_s)


def wall_s(found: Estimate, card: SystemCard, processes: int) -> tuple[float, float]:
    """Seconds that a system takes by the clock, low and high, with nothing else on the machine.

    Audio of a system behind a socket is streamed as time passes, in as many sessions as its card allows; all else is
    computed, by as many processes (a system in an environment of its own: in as many workers as its card allows).
    """
    low, high = found.compute_low_s / processes, found.compute_high_s / processes
    if card.environment.kind != "none":
        low, high = found.compute_low_s / card.max_inflight, found.compute_high_s / card.max_inflight
    if card.driver == "realtime" and not card.uses_cache:
        low, high = low + found.live_s / card.max_inflight, high + found.listened_s / card.max_inflight
    return low, high


def detectable_difference(workspace: Workspace, track: Track) -> str:
    """In words, the smallest difference between two systems that the planned clusters can show."""
    items = stored(workspace, track, "items")
    if items is None:
        clusters = workspace.profile.multiparty.n_pairs if track == "multiparty" else planned_sessions(workspace)
    else:
        clusters = items["cluster"].n_unique()
    level = workspace.profile.statistics.level
    smallest = minimum_detectable_difference(clusters, ASSUMED_SD, level=level)
    return (
        f"{track}: {clusters} clusters; differences of rates below {100 * smallest:.0f} points would go unseen "
        f"(80 % power, spread {ASSUMED_SD} assumed)"
    )
