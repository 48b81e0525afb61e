"""The three passes of the label engine on whole nanoseconds, so that 250 ms is 250 ms after any arithmetic.

A *segment* is a stretch of one speaker's activity after pass (i). Every segment ends up as exactly one of: part of a
turn, a backchannel, a failed take. Nothing here knows seconds, names or labels; ``labels`` translates.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from duplex_bench.conversation.label_types import LabelRules, SpeakerTrack

NS = 1_000_000_000


def to_ns(seconds: float) -> int:
    """Seconds as the nearest whole nanosecond."""
    return round(seconds * NS)


class Role(IntEnum):
    """What a segment is."""

    TURN = 0
    BACKCHANNEL = 1
    FAILED_TAKE = 2


class Ending(IntEnum):
    """What the look-ahead found after a turn segment."""

    RESUMES = 0
    OTHER_YIELDS = 1
    OTHER_TALKING = 2
    OTHER_STARTS = 3
    NOBODY = 4


PAUSES = frozenset({Ending.RESUMES, Ending.OTHER_YIELDS})


@dataclass(slots=True)
class Channel:
    """One speaker's segments in time order (parallel lists) and what the passes decided about them.

    ``held_by_speech`` tells, for a backchannel, whether the other was speaking (True) or pausing (False);
    ``following`` is the next turn segment after a pause; ``margin`` in [0, 1] how far the decision was from its limit.
    """

    start: list[int]
    end: list[int]
    words: list[int]
    role: list[Role] = field(default_factory=list)
    held_by_speech: dict[int, bool] = field(default_factory=dict)
    ending: dict[int, Ending] = field(default_factory=dict)
    following: dict[int, int] = field(default_factory=dict)
    margin: dict[int, float] = field(default_factory=dict)
    continued: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.start)


def close_gaps(intervals_s: Sequence[tuple[float, float]], close_gap_s: float) -> tuple[list[int], list[int]]:
    """Pass (i): sorted (start, end) seconds -> starts and ends in nanoseconds, gaps up to the limit closed."""
    starts: list[int] = []
    ends: list[int] = []
    limit = to_ns(close_gap_s)
    for first, last in intervals_s:
        start, end = to_ns(first), to_ns(last)
        if ends and start - ends[-1] <= limit:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends


def channel_of(track: SpeakerTrack, rules: LabelRules) -> Channel:
    """Segments of one speaker with their word counts.

    A word counts for the segment it overlaps longest, the earlier one if two share it equally; a word that touches
    no segment counts for none (voice activity, not the transcript, says when somebody speaks).
    """
    starts, ends = close_gaps(track.speech, rules.close_gap_s)
    words = [0] * len(starts)
    for word in track.words:
        first, last = to_ns(word.start_s), to_ns(word.end_s)
        best, best_overlap = -1, 0 if last > first else -1
        segment = bisect_right(ends, first)
        while segment < len(starts) and (starts[segment] < last or starts[segment] <= first):
            overlap = min(last, ends[segment]) - max(first, starts[segment])
            if overlap > best_overlap:
                best, best_overlap = segment, overlap
            segment += 1
        if best >= 0:
            words[best] += 1
    return Channel(starts, ends, words, [Role.TURN] * len(starts))


def mark_backchannels(left: Channel, right: Channel, rules: LabelRules) -> None:
    """Pass (ii): small segments that begin while the other holds the floor.

    Small is at most ``backchannel_max_s`` and ``backchannel_max_words``. At the segment's start the other holds the
    floor when it

    - is speaking in a segment that is not itself a backchannel (of two that begin together only a large one holds
      the floor: two small ones do not make each other backchannels), or
    - is inside a pause: it was the last to stop speaking (backchannels aside), it speaks again within the look-ahead
      of that stop, and of all large segments that begin later, the first is its own. "Substantively" is taken by size
      here, since what a later small segment is depends on this one.

    Segments are taken in the order of their starts, so what lies before is always decided.
    """
    max_ns, look_ns = to_ns(rules.backchannel_max_s), to_ns(rules.look_ahead_s)
    channels = (left, right)
    large = [
        [
            end - start > max_ns or words > rules.backchannel_max_words
            for start, end, words in zip(channel.start, channel.end, channel.words, strict=True)
        ]
        for channel in channels
    ]
    next_large = [_next_start_where(channel.start, flags) for channel, flags in zip(channels, large, strict=True)]
    holder: list[int | None] = [None, None]
    order = sorted((start, side, i) for side in (0, 1) for i, start in enumerate(channels[side].start))

    position = 0
    while position < len(order):
        stop = position + 1
        while stop < len(order) and order[stop][0] == order[position][0]:
            stop += 1
        together = order[position:stop]
        for start, side, i in together:
            if large[side][i]:
                continue
            own, their = channels[side], channels[1 - side]
            at = bisect_left(their.start, start)
            rival = at < len(their) and their.start[at] == start and large[1 - side][at]
            held = holder[1 - side]
            speaking = rival or (held is not None and their.end[held] > start)
            if speaking or (
                held is not None
                and _in_pause(own, their, start, held, holder[side], look_ns)
                and _first(next_large[1 - side], their.start, start, next_large[side], own.start)
            ):
                own.role[i] = Role.BACKCHANNEL
                own.held_by_speech[i] = speaking
        for _, side, i in together:
            if channels[side].role[i] is not Role.BACKCHANNEL:
                holder[side] = i
        position = stop


def _next_start_where(starts: list[int], flags: list[bool]) -> list[int | None]:
    """For each index, the start of the first flagged segment at or after it; one more entry (None) at the end."""
    result: list[int | None] = [None] * (len(starts) + 1)
    for i in range(len(starts) - 1, -1, -1):
        result[i] = starts[i] if flags[i] else result[i + 1]
    return result


def _in_pause(own: Channel, their: Channel, start: int, held: int, mine: int | None, look_ns: int) -> bool:
    """Whether they stopped last before ``start`` and speak again soon enough for that to be a pause."""
    if mine is not None and own.end[mine] >= their.end[held]:
        return False
    again = bisect_right(their.start, start)
    return again < len(their) and their.start[again] - their.end[held] <= look_ns


def _first(
    their_large: list[int | None], their_start: list[int], start: int, own_large: list[int | None], own_start: list[int]
) -> bool:
    """Whether the next large segment after ``start`` is theirs."""
    theirs = their_large[bisect_right(their_start, start)]
    mine = own_large[bisect_right(own_start, start)]
    return theirs is not None and (mine is None or theirs < mine)


def look_ahead(left: Channel, right: Channel, rules: LabelRules) -> None:
    """Pass (iii): what follows each remaining offset, in the order of the offsets.

    With t the offset of a segment of one speaker, backchannels aside:

    1. the other began before t and ends after it: end of turn (it was already talking and goes on);
    2. the speaker's next segment begins within the look-ahead, and not after the other's next one: pause;
    3. the other begins first, within the look-ahead: if the speaker's next segment also begins within it, and all that
       the other said since t has stopped by then (within the look-ahead too, and either before the speaker resumes or
       while the speaker goes on), it is a pause, and what the other said are failed takes; otherwise end of turn;
    4. nobody begins within the look-ahead: end of turn.

    A failed take has no offset of its own to look at. Where both stop at the same instant, the one who speaks again
    first is taken first, and a segment that continues a turn is no failed take.
    """
    channels = (left, right)
    floor = [[i for i, role in enumerate(channel.role) if role is Role.TURN] for channel in channels]
    starts = [[channel.start[i] for i in kept] for channel, kept in zip(channels, floor, strict=True)]
    far = max((channel.end[-1] for channel in channels if len(channel)), default=0) + 1

    def resumption(side: int, k: int) -> int:
        return starts[side][k + 1] if k + 1 < len(floor[side]) else far

    offsets = sorted(
        (channels[side].end[i], resumption(side, k), side, k) for side in (0, 1) for k, i in enumerate(floor[side])
    )
    for t, _, side, k in offsets:
        own = channels[side]
        if own.role[floor[side][k]] is Role.TURN:
            _decide(own, channels[1 - side], floor[side], floor[1 - side], starts[1 - side], k, t, rules)


def _decide(
    own: Channel, their: Channel, mine: list[int], theirs: list[int], their_start: list[int], k: int, t: int,
    rules: LabelRules,
) -> None:  # fmt: skip
    look_ns = to_ns(rules.look_ahead_s)
    segment = mine[k]
    again = mine[k + 1] if k + 1 < len(mine) else None
    if again is not None and own.start[again] - t > look_ns:
        beyond = own.start[again] - t
        again = None
    else:
        beyond = None
    first = bisect_left(their_start, t)
    if first > 0 and their.end[theirs[first - 1]] > t:
        going_on = their.end[theirs[first - 1]] - t
        _conclude(own, segment, Ending.OTHER_TALKING, going_on / look_ns if look_ns else 1.0)
        return
    take = theirs[first] if first < len(theirs) else None
    if take is not None and their.start[take] - t > look_ns:
        beyond = min(beyond or their.start[take] - t, their.start[take] - t)
        take = None
    if again is not None and (take is None or own.start[again] <= their.start[take]):
        _pause(own, segment, again, Ending.RESUMES, t, look_ns)
    elif take is None:
        _conclude(own, segment, Ending.NOBODY, 1.0 if beyond is None or not look_ns else beyond / look_ns - 1.0)
    else:
        takes = [] if again is None else theirs[first : bisect_left(their_start, own.start[again])]
        if again is not None and _yielded(own, their, takes, again, t, rules):
            _pause(own, segment, again, Ending.OTHER_YIELDS, t, look_ns)
            for i in takes:
                their.role[i] = Role.FAILED_TAKE
                their.margin[i] = own.margin[segment]
        else:
            held = their.end[take] - their.start[take]
            _conclude(own, segment, Ending.OTHER_STARTS, held / look_ns if look_ns else 1.0)


def _yielded(own: Channel, their: Channel, takes: list[int], again: int, t: int, rules: LabelRules) -> bool:
    """Whether all of ``takes`` gave way to the speaker's segment ``again``."""
    stopped = their.end[takes[-1]]
    return (
        stopped - t <= to_ns(rules.look_ahead_s)
        and (stopped <= own.start[again] or stopped < own.end[again])
        and stopped - their.start[takes[0]] <= to_ns(rules.failed_take_max_s)
        and not any(i in their.continued for i in takes)
    )


def _pause(own: Channel, segment: int, again: int, ending: Ending, t: int, look_ns: int) -> None:
    own.following[segment] = again
    own.continued.add(again)
    own.ending[segment] = ending
    own.margin[segment] = 1.0 - (own.start[again] - t) / look_ns if look_ns else 0.0


def _conclude(own: Channel, segment: int, ending: Ending, margin: float) -> None:
    own.ending[segment] = ending
    own.margin[segment] = min(1.0, max(0.0, margin))
