"""The label engine: turns, pauses, backchannels, overlaps and failed takes from voice activity and words."""

from duplex_bench.conversation.label_types import (
    Label,
    LabelInputError,
    LabelKind,
    LabelRules,
    Speaker,
    SpeakerTrack,
    Word,
)

__all__ = ["Label", "LabelInputError", "LabelKind", "LabelRules", "Speaker", "SpeakerTrack", "Word"]
