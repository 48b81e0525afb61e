"""What a system did when the floor was handed to it (design 15.3; P2 section 3.5, items 2 and 3)."""

from dataclasses import dataclass

import numpy as np

from duplex_bench.audio.activity import bridge
from duplex_bench.conversation.measures import MeasureError, Spans, as_spans, overlap_matrix


@dataclass(frozen=True, slots=True)
class TurnEndOutcome:
    """The response at one turn end; seconds, None where there is nothing to measure.

    Attributes:
        word_indices: which of the given words belong to the response, in order of onset. None of them: no response.
        latency_s: onset of the first word of the response minus the turn end; 0 or less if it began before.
        begun_before: the response was under way at the turn end.
        spoke_before: some speech ended before the turn end; it is no part of the response.
        duration_s: start of the first to end of the last speech interval of the response, words or not.
        first_reply_s: length of the response's first stretch without a gap longer than ``reply_gap_s`` (ours).
        resumptions: how many more such stretches follow it (ours).
        at_cap: still speaking at the cap.
        start_s: where the response's first speech interval starts on the listener timeline.
    """

    word_indices: tuple[int, ...] = ()
    latency_s: float | None = None
    begun_before: bool = False
    spoke_before: bool = False
    duration_s: float | None = None
    first_reply_s: float | None = None
    resumptions: int | None = None
    at_cap: bool = False
    start_s: float | None = None

    @property
    def responded(self) -> bool:
        """Whether any transcribed word belongs to the response."""
        return bool(self.word_indices)


def measure_turn_end(
    intervals_s: Spans,
    word_times_s: Spans,
    turn_end_s: float,
    *,
    cap_at_s: float,
    bridge_s: float = 0.25,
    reply_gap_s: float = 1.0,
) -> TurnEndOutcome:
    """The response to a turn that ended at ``turn_end_s``, on the listener timeline.

    Speech that was over by the turn end is not part of the response; speech under way at the turn end is, from its
    own start, so that its latency is 0 or less. A word belongs to the response if it overlaps a stretch of speech
    that does, or overlaps no speech interval at all and ends after the turn end.

    Args:
        intervals_s: gate intervals of the listener audio, (k, 2) seconds.
        word_times_s: word starts and ends, (m, 2) seconds, in any order; ``word_indices`` refers to this order.
        turn_end_s: where the person's turn ended.
        cap_at_s: where the rollout is stopped at the latest. Speech counts as still going at the cap if it reaches
            to within ``bridge_s`` of it: what follows a cut cannot be seen.
        bridge_s: gaps up to this length do not interrupt speech (design 5).
        reply_gap_s: a longer gap ends a reply, what follows is a resumption (ours).

    Raises:
        MeasureError: spans that are not finite, ordered pairs, or a cap before the turn end.
    """
    if not cap_at_s >= turn_end_s:
        raise MeasureError(f"cap_at_s: {cap_at_s} lies before the turn end at {turn_end_s}")
    intervals = as_spans(intervals_s, "intervals_s")
    as_spans(word_times_s, "word_times_s")
    words = np.asarray(word_times_s, dtype=np.float64).reshape(-1, 2)
    runs = bridge(intervals, bridge_s) if len(intervals) else intervals
    response = runs[runs[:, 1] > turn_end_s]
    stray = ~overlap_matrix(runs, words).any(axis=0) & (words[:, 1] > turn_end_s)
    chosen = np.flatnonzero(overlap_matrix(response, words).any(axis=0) | stray)
    chosen = chosen[np.argsort(words[chosen, 0], kind="stable")]
    latency_s = float(words[chosen[0], 0] - turn_end_s) if len(chosen) else None
    spoke_before = bool((runs[:, 1] <= turn_end_s).any())
    indices = tuple(int(index) for index in chosen)
    if not len(response):
        return TurnEndOutcome(word_indices=indices, latency_s=latency_s, spoke_before=spoke_before)
    replies = bridge(response, max(reply_gap_s, bridge_s))
    return TurnEndOutcome(
        word_indices=indices,
        latency_s=latency_s,
        begun_before=bool(response[0, 0] < turn_end_s),
        spoke_before=spoke_before,
        duration_s=float(response[-1, 1] - response[0, 0]),
        first_reply_s=float(replies[0, 1] - replies[0, 0]),
        resumptions=len(replies) - 1,
        at_cap=bool(((response[:, 0] <= cap_at_s) & (response[:, 1] >= cap_at_s - bridge_s)).any()),
        start_s=float(response[0, 0]),
    )
