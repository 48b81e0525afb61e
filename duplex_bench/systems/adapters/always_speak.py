"""Reference policy: always speaks (design 15.7: presence 1, fresh onset 0, silence 0, takeover 1 at latency 0)."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import numpy as np

from duplex_bench.audio.activity import DEFAULT_BRIDGE_S, bridge
from duplex_bench.audio.gate import gate, intervals_s
from duplex_bench.audio.mixing import trim_silence
from duplex_bench.audio.resample import resample
from duplex_bench.audio.time import to_samples
from duplex_bench.contract.types import OpenRequest, Spec
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.systems.adapters.lockstep_track import RATE_HZ, TRACK_SPEC, UNIT_SAMPLES, TrackSession

DEFAULT_VOICE: Final = "narrator"
_CHECKED_LOOPS: Final = 3
_KEPT_GAP_S: Final = 0.1
# Below the peak by this much counts as edge: trimmed, so that the loop's seam stays under the bridge.
_TRIM_DB: Final = 30.0


class AlwaysSpeak:
    """Loops clips, one after the other, from sample 0 on.

    The loop is long and says many things: a recogniser drops what a short loop repeats, and speech without words is
    no takeover (measured: 5 of 18 pauses came out wordless with one looped sentence).

    Args:
        clips: Float32 speech (n,) at 24 kHz, one clip a sentence.

    Raises:
        ValueError: The looped clip is not one interval of bridged activity from its first sample on: with a hole, a
            continuous speaker would start "fresh" by chance.
    """

    spec: Spec = TRACK_SPEC

    def __init__(self, *clips: Samples) -> None:
        loop = np.concatenate([trim_silence(clip, RATE_HZ, threshold_db=_TRIM_DB) for clip in clips])
        active = bridge(intervals_s(np.tile(loop, _CHECKED_LOOPS), RATE_HZ), DEFAULT_BRIDGE_S)
        length_s = _CHECKED_LOOPS * len(loop) / RATE_HZ
        if len(active) != 1 or active[0, 0] > 0.0 or active[0, 1] < length_s - DEFAULT_BRIDGE_S:
            raise ValueError(
                f"always_speak: the looped clip has {len(active)} intervals of bridged activity instead of one from "
                f"0 to {length_s:.2f} s ({active.tolist()}): choose sentences without pauses"
            )
        self.loop = loop

    def new_session(self) -> TrackSession:
        """A session that talks from the first sample to the last."""
        return TrackSession(self._frame)

    def _frame(self, request: OpenRequest, unit: int) -> Samples:
        del request
        positions = np.arange(unit * UNIT_SAMPLES, (unit + 1) * UNIT_SAMPLES) % len(self.loop)
        frame: Samples = self.loop[positions]
        return frame


def _without_breaks(clip: Samples) -> Samples:
    # What the gate hears, with phrase breaks cut short: the engine breathes for up to 0.4 s inside a sentence.
    heard = gate(clip, RATE_HZ)
    if not len(heard):
        raise ValueError("always_speak: a clip without speech above the gate: choose another sentence or voice")
    kept = to_samples(_KEPT_GAP_S, RATE_HZ)
    ends = [
        min(stop + kept, following) for (_, stop), following in zip(heard, [*heard[1:, 0], heard[-1, 1]], strict=True)
    ]
    part: Samples = np.concatenate([clip[start:end] for (start, _), end in zip(heard, ends, strict=True)])
    return part


def create(settings: Mapping[str, Any], store: ObjectStore | None = None) -> AlwaysSpeak:
    """The policy with its sentences spoken by the embedded voices.

    Args:
        settings: ``voice``, optional.
        store: Cache of clips.

    Raises:
        ValueError: Unknown settings, an unknown voice, or sentences with pauses.
    """
    from duplex_bench.speech.engines import text_to_speech

    unknown = set(settings) - {"voice"}
    if unknown:
        raise ValueError(f"always_speak: unknown settings {sorted(unknown)}; known is voice")
    tts = text_to_speech("embedded", store)
    voice = str(settings.get("voice", DEFAULT_VOICE))
    spoken = [tts.speak(sentence, voice) for sentence in sentences()]
    return AlwaysSpeak(*(_without_breaks(resample(clip.samples, clip.sample_rate_hz, RATE_HZ)) for clip in spoken))


def sentences() -> tuple[str, ...]:
    """What the policy says, one sentence after the other."""
    text = files("duplex_bench.systems.adapters").joinpath("always_speak.txt").read_text("utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip())
