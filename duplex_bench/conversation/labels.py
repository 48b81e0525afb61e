"""The label engine: turns, pauses, backchannels, overlaps and failed takes from voice activity and words.

Source: P2 section 3.2; the order of the passes and every limit are settled in design 15.1. ``label_passes`` says how
each pass resolves what the text leaves open.
"""

from collections.abc import Iterator
from itertools import pairwise

from duplex_bench.conversation.label_passes import (
    NS,
    PAUSES,
    Channel,
    Ending,
    Role,
    channel_of,
    look_ahead,
    mark_backchannels,
)
from duplex_bench.conversation.label_types import (
    SPEAKERS,
    Label,
    LabelInputError,
    LabelKind,
    LabelRules,
    Speaker,
    SpeakerTrack,
    Word,
    other,
)

__all__ = [
    "LABEL_ENGINE_VERSION",
    "Label",
    "LabelInputError",
    "LabelKind",
    "LabelRules",
    "Speaker",
    "SpeakerTrack",
    "Word",
    "label_conversation",
    "other",
]

LABEL_ENGINE_VERSION = 1

_ENDING_RULE = {
    Ending.RESUMES: "same_speaker_resumes",
    Ending.OTHER_YIELDS: "other_yields",
    Ending.OTHER_TALKING: "other_already_talking",
    Ending.OTHER_STARTS: "other_starts",
    Ending.NOBODY: "nobody_speaks",
}
_KIND_ORDER: dict[str, int] = {"turn": 0, "pause": 1, "backchannel": 2, "overlap": 3, "failed_take": 4}


def label_conversation(left: SpeakerTrack, right: SpeakerTrack, rules: LabelRules | None = None) -> list[Label]:
    """Labels of a conversation of two, the same for the same input, sorted by start.

    - **turn**: segments of one speaker joined across the speaker's own pauses; ``rule`` says how it ended
      (``other_starts``, ``other_already_talking``, ``nobody_speaks``).
    - **pause**: between two segments of one turn (``same_speaker_resumes``, or ``other_yields`` with failed takes
      of the other inside).
    - **backchannel**: one small segment ``while_other_speaks`` or ``while_other_pauses``.
    - **failed_take**: one segment of the other that gave way (``starts_and_yields``).
    - **overlap**: both speak, each in a turn or a failed take, at most one of them a failed take
      (``turn_and_turn``, ``turn_and_failed_take``). Silence inside a turn is not speech, so a failed take wholly
      inside a pause overlaps nothing. The speaker is the one whose turn or take began later (on a tie: ended later).

    Confidence is 0.5 at a rule's limit and 1 far from it: 0.5 + margin / 2, with the margin of the deciding
    time (pause length, time the other held on, or time beyond the look-ahead, each relative to the look-ahead; for a
    backchannel, its length relative to the longest allowed), halved where no word supports the label (ours).

    Args:
        left: voice activity and words of one speaker.
        right: those of the other, on the same clock.
        rules: limits; the paper's by default.

    Returns:
        Labels in seconds, rounded to nanoseconds.
    """
    rules = LabelRules() if rules is None else rules
    channels = (channel_of(left, rules), channel_of(right, rules))
    mark_backchannels(*channels, rules)
    look_ahead(*channels, rules)
    labels: list[Label] = []
    spans: list[list[_Span]] = []
    for speaker, channel in zip(SPEAKERS, channels, strict=True):
        placed, active = _labels_of(speaker, channel, rules)
        labels.extend(placed)
        spans.append(active)
    labels.extend(_overlaps(spans[0], spans[1]))
    return sorted(
        labels,
        key=lambda label: (label.start_s, _KIND_ORDER[label.kind], label.end_s, label.speaker),
    )


_Span = tuple[int, int, Label]
"""Start and end of one segment in nanoseconds, and the turn or failed take it belongs to."""


def _confidence(margin: float, words: int) -> float:
    sure = 0.5 + 0.5 * margin
    return round(sure if words else sure / 2, 6)


def _labels_of(speaker: Speaker, channel: Channel, rules: LabelRules) -> tuple[list[Label], list[_Span]]:
    labels: list[Label] = []
    spans: list[_Span] = []

    def add(kind: LabelKind, start: int, end: int, rule: str, confidence: float) -> Label:
        label = Label(speaker, kind, start / NS, end / NS, rule, confidence)
        labels.append(label)
        return label

    for i in range(len(channel)):
        start, end, words = channel.start[i], channel.end[i], channel.words[i]
        if channel.role[i] is Role.BACKCHANNEL:
            longest = rules.backchannel_max_s * NS
            margin = 1.0 - (end - start) / longest if longest else 0.0
            rule = "while_other_speaks" if channel.held_by_speech[i] else "while_other_pauses"
            add("backchannel", start, end, rule, _confidence(margin, words))
        elif channel.role[i] is Role.FAILED_TAKE:
            take = add("failed_take", start, end, "starts_and_yields", _confidence(channel.margin[i], words))
            spans.append((start, end, take))
        elif i not in channel.continued:
            parts = list(_turn_parts(channel, i))
            last = parts[-1]
            said = sum(channel.words[part] for part in parts)
            confidence = _confidence(channel.margin[last], said)
            turn = add("turn", start, channel.end[last], _ENDING_RULE[channel.ending[last]], confidence)
            for part, after in pairwise(parts):
                rule = _ENDING_RULE[channel.ending[part]]
                add("pause", channel.end[part], channel.start[after], rule, _confidence(channel.margin[part], said))
            spans.extend((channel.start[part], channel.end[part], turn) for part in parts)
    return labels, sorted(spans, key=lambda span: span[:2])


def _turn_parts(channel: Channel, first: int) -> Iterator[int]:
    """Indices of the segments of the turn that begins with segment ``first``."""
    yield first
    while channel.ending[first] in PAUSES:
        first = channel.following[first]
        yield first


def _overlaps(left: list[_Span], right: list[_Span]) -> Iterator[Label]:
    """Where a segment of each side is active at once; both lists are sorted and disjoint."""
    i = j = 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        one, two = left[i][2], right[j][2]
        if start < end and "turn" in (one.kind, two.kind):
            second = max(one, two, key=lambda label: (label.start_s, label.end_s))
            rule = "turn_and_turn" if one.kind == two.kind else "turn_and_failed_take"
            confidence = min(one.confidence, two.confidence)
            yield Label(second.speaker, "overlap", start / NS, end / NS, rule, confidence)
        if left[i][1] <= right[j][1]:
            i += 1
        else:
            j += 1
