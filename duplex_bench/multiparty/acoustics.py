"""The same scene in other acoustics, as a paired condition: telephone band, room, noise, overlapping turns (ours).

Everything is drawn by name, so that equal scenes and settings give equal samples. Gold boundaries stay those of the
clean clips: a room's tail rings on after them.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.mixing import rms_dbfs
from duplex_bench.audio.time import to_samples
from duplex_bench.multiparty.scenes import Scene, SceneError, SceneLayout
from duplex_bench.storage.digests import generator_from

Mono = npt.NDArray[np.float32]
Acoustics = Literal["clean", "telephone", "room", "noise", "overlap"]
CLEAN: Final = "clean"
# Raise when the sound that equal settings give, or what is checked of it, changes.
ACOUSTICS_VERSION: Final = 2
_MU: Final = 255.0
_PEAK: Final = 0.99


@dataclass(frozen=True, slots=True)
class AcousticSettings:
    """Numbers of the conditions, all ours.

    Raises:
        ValueError: a number is out of range.
    """

    telephone_low_hz: float = 300.0
    """The band of a telephone line; samples also go through 8-bit mu-law."""
    telephone_high_hz: float = 3400.0
    room_rt60_s: float = 0.4
    """Time in which the synthetic room's sound falls by 60 dB."""
    room_direct_to_reverberant_db: float = 3.0
    noise_snr_db: float = 15.0
    """Level of the speech over that of steady pink noise, over the turns."""
    overlap_s: float = 0.3
    """How much earlier a turn begins than the turn before it ends; not after T and N4Q, whose windows stay free."""

    def __post_init__(self) -> None:
        if not 0 < self.telephone_low_hz < self.telephone_high_hz:
            raise ValueError("telephone_low_hz and telephone_high_hz: give 0 < low < high")
        for name in ("room_rt60_s", "overlap_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}: give more than 0 seconds")


def layout_for(kind: Acoustics, layout: SceneLayout, settings: AcousticSettings) -> SceneLayout:
    """Where turns lie in a condition: for ``overlap`` the next turn begins before the last one ends."""
    return replace(layout, overlap_s=settings.overlap_s) if kind == "overlap" else layout


def heard_in(kind: Acoustics, scene: Scene, settings: AcousticSettings) -> Scene:
    """``scene`` as it sounds in a condition; clean and overlap change no sample.

    Raises:
        SceneError: the scene's rate cannot carry the telephone band, or it has no speech to set noise against.
    """
    if kind == "telephone":
        changed = telephone(scene.samples, scene.sample_rate_hz, settings)
    elif kind == "room":
        changed = room(scene.samples, scene.sample_rate_hz, settings)
    elif kind == "noise":
        changed = noisy(scene, settings)
    else:
        return scene
    peak = float(np.abs(changed).max(initial=0.0))
    if peak > _PEAK:
        changed = changed * (_PEAK / peak)
    return replace(scene, samples=changed.astype(np.float32))


def telephone(samples: Mono, sample_rate_hz: int, settings: AcousticSettings) -> npt.NDArray[np.float64]:
    """Band-passed forwards and backwards (no delay), then 8-bit mu-law and back. Float (n,)."""
    if sample_rate_hz <= 2 * settings.telephone_high_hz:
        raise SceneError(f"{sample_rate_hz} Hz cannot carry a band up to {settings.telephone_high_hz} Hz: raise it")
    band = (settings.telephone_low_hz, settings.telephone_high_hz)
    from scipy.signal import butter, sosfiltfilt

    filtered = sosfiltfilt(butter(4, band, "bandpass", fs=sample_rate_hz, output="sos"), samples.astype(np.float64))
    limited = np.clip(filtered, -1.0, 1.0)
    squeezed = np.sign(limited) * np.log1p(_MU * np.abs(limited)) / np.log1p(_MU)
    steps = np.rint(squeezed * 127.0) / 127.0
    opened: npt.NDArray[np.float64] = np.sign(steps) * np.expm1(np.abs(steps) * np.log1p(_MU)) / _MU
    return opened


def room_response(sample_rate_hz: int, settings: AcousticSettings) -> npt.NDArray[np.float64]:
    """A synthetic impulse response: the direct sound at sample 0, then noise that decays by 60 dB in ``room_rt60_s``.

    The tail begins 3 ms after the direct sound; its energy lies ``room_direct_to_reverberant_db`` below it.
    """
    n = to_samples(settings.room_rt60_s, sample_rate_hz)
    tail = generator_from("room-response/1", sample_rate_hz).standard_normal(n)
    tail *= 10 ** (-3 * np.arange(n) / n)
    tail[: to_samples(0.003, sample_rate_hz)] = 0.0
    tail *= np.sqrt(10 ** (-settings.room_direct_to_reverberant_db / 10) / np.square(tail).sum())
    response: npt.NDArray[np.float64] = np.concatenate([[1.0], tail[1:]])
    return response


def room(samples: Mono, sample_rate_hz: int, settings: AcousticSettings) -> npt.NDArray[np.float64]:
    """``samples`` through the room, cut to their own length and brought to their own level. Float (n,)."""
    from scipy.signal import fftconvolve

    wet: npt.NDArray[np.float64] = fftconvolve(samples.astype(np.float64), room_response(sample_rate_hz, settings))
    wet = wet[: len(samples)]
    energy = float(np.square(wet).mean())
    return wet * np.sqrt(float(np.square(samples, dtype=np.float64).mean()) / energy) if energy > 0 else wet


def noisy(scene: Scene, settings: AcousticSettings) -> npt.NDArray[np.float64]:
    """The scene under steady pink noise, named by scenario so that both forms hear the same. Float (n,)."""
    spoken = np.concatenate([scene.samples[turn.start_sample : turn.stop_sample] for turn in scene.turns])
    level = rms_dbfs(spoken)
    if not np.isfinite(level):
        raise SceneError(
            f"script {scene.script.script_id}: its turns are silent: there is no level to set noise against"
        )
    rng = generator_from("scene-noise/1", scene.script.scenario_id)
    n = scene.n_samples
    spectrum = np.fft.rfft(rng.standard_normal(n))
    frequency = np.fft.rfftfreq(n, 1 / scene.sample_rate_hz)
    # Below 50 Hz pink noise has most of its power, where neither speech nor a loudspeaker has any.
    spectrum *= np.where(frequency >= 50.0, 1 / np.sqrt(np.maximum(frequency, 50.0)), 0.0)
    noise = np.fft.irfft(spectrum, n)
    noise *= 10 ** ((level - settings.noise_snr_db) / 20) / np.sqrt(np.square(noise).mean())
    return scene.samples.astype(np.float64) + noise
