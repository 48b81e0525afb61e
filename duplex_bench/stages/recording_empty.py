"""Why a recording gave no score at all, in words: an empty page must not look like a result."""

from typing import Final

from duplex_bench.stages.recording_scores import USER, Scored

# The least that the labels call a turn with a pause or an end after it.
_LEAST_TURN_S: Final = 1.0


def why_nothing_scored(scored: Scored) -> str | None:
    """The reason, or None where at least one window has a value."""
    if any(one.score.value is not None for one in scored.measurements):
        return None
    return f"nothing could be scored: {_reason(scored)}"


def _reason(scored: Scored) -> str:
    duration_s = scored.recording.duration_s
    if duration_s < _LEAST_TURN_S:
        return f"the recording lasts {duration_s:.3f} s, and a turn of the user at least {_LEAST_TURN_S:g} s"
    spoken = {"user": scored.session.left.speech, "system": scored.session.right.speech}
    silent = [who for who, speech in spoken.items() if not len(speech)]
    if silent:
        channels = " and of the ".join(silent)
        return f"no speech was found on the channel of the {channels}; check that it is the right file and loud enough"
    turns = [label for label in scored.labels if label.speaker == USER and label.kind == "turn"]
    long_enough = [label for label in turns if label.end_s - label.start_s >= _LEAST_TURN_S]
    if not long_enough:
        return f"no turn of the user lasts {_LEAST_TURN_S:g} s ({len(turns)} are shorter): no pause and no turn end"
    if scored.measurements:
        reasons = sorted({one.score.reason for one in scored.measurements if one.score.reason})
        return f"no window has a value ({'; '.join(reasons[:3])})"
    return "the user's turns hold no pause of 0.6 s and no end in the recording, and neither speaks over the other"
