"""The cast listened to by measurement, and the detectors tried on what is no speech."""

import time
from collections.abc import Mapping, Sequence
from importlib import resources

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.audio.gate import speech_intervals
from duplex_bench.audio.mixing import rms_dbfs
from duplex_bench.audio.resample import resample
from duplex_bench.speech.interfaces import Recogniser, Samples, SpokenClip, TextToSpeech, VoiceActivityDetector
from duplex_bench.storage.digests import generator_from
from duplex_bench.text.error_rate import WordErrors, word_errors

Vector = npt.NDArray[np.float64]

ANALYSIS_RATE_HZ = 16000
LOWEST_PITCH_HZ, HIGHEST_PITCH_HZ = 60.0, 500.0
N_MFCC = 20
CONTROL_S = 10.0


def quality_sentences() -> tuple[str, ...]:
    """The sentences that the cast is judged by, from ``quality_sentences.txt``."""
    text = resources.files(__package__).joinpath("quality_sentences.txt").read_text(encoding="utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


def cast_quality(tts: TextToSpeech, recogniser: Recogniser, sentences: Sequence[str] | None = None) -> pl.DataFrame:
    """How each voice sounds to instruments.

    Args:
        tts: the cast.
        recogniser: hears it; its own errors count as the voice's.
        sentences: what is read; the shipped list where None.

    Returns:
        One row a voice: ``voice``, ``n_sentences``, ``n_words``, ``word_error_rate``, ``level_dbfs`` (mean RMS),
        ``peak`` (highest absolute sample), ``median_f0_hz`` (pYIN, voiced frames), ``realtime_factor`` (seconds of
        work for a second of speech) and ``nearest_distance`` (see ``speaker_distance``).

    Raises:
        ValueError: no sentences.
    """
    chosen = tuple(sentences) if sentences is not None else quality_sentences()
    if not chosen:
        raise ValueError("no sentences to judge the cast by: give at least one")
    rows: list[dict[str, str | int | float]] = []
    clips: dict[str, list[SpokenClip]] = {}
    for voice in tts.voices:
        begun_s = time.perf_counter()
        spoken = [tts.speak(sentence, voice) for sentence in chosen]
        work_s = time.perf_counter() - begun_s
        errors = WordErrors()
        for sentence, clip in zip(chosen, spoken, strict=True):
            words = recogniser.words(clip.samples, clip.sample_rate_hz)
            errors += word_errors(sentence, " ".join(word.text for word in words))
        clips[voice] = spoken
        rows.append(
            {
                "voice": voice,
                "n_sentences": len(chosen),
                "n_words": errors.n_reference,
                "word_error_rate": errors.rate,
                "level_dbfs": float(np.mean([rms_dbfs(clip.samples) for clip in spoken])),
                "peak": max(float(np.abs(clip.samples).max()) for clip in spoken),
                "median_f0_hz": median_f0_hz(spoken),
                "realtime_factor": work_s / sum(len(clip.samples) / clip.sample_rate_hz for clip in spoken),
            }
        )
    distances = speaker_distance(clips)
    others = distances.filter(pl.col("voice") != pl.col("other"))
    nearest = others.group_by("voice").agg(nearest_distance=pl.col("distance").min())
    return pl.DataFrame(rows).join(nearest, on="voice", how="left", maintain_order="left")


def median_f0_hz(clips: Sequence[SpokenClip]) -> float:
    """Median pitch of the voiced frames of ``clips`` (pYIN, Mauch and Dixon 2014); NaN if none is voiced."""
    import librosa

    joined = np.concatenate([resample(clip.samples, clip.sample_rate_hz, ANALYSIS_RATE_HZ) for clip in clips])
    pitch_hz, voiced, _ = librosa.pyin(
        joined,
        fmin=LOWEST_PITCH_HZ,
        fmax=HIGHEST_PITCH_HZ,
        sr=ANALYSIS_RATE_HZ,
        frame_length=2048,
        hop_length=256,
        resolution=0.2,
    )
    return float(np.median(pitch_hz[voiced])) if voiced.any() else float("nan")


def speaker_distance(clips: Mapping[str, Sequence[SpokenClip]]) -> pl.DataFrame:
    """Rough distance between voices, from timbre and pitch. It is no speaker embedding.

    A half is a voice's odd or even clips, described by its mean MFCCs 1 to 19 and its median pitch in semitones.
    Distances are root mean squares of the differences, each feature divided by its spread between the two halves
    of one voice (pooled over voices), so that 1 is about how far a voice is from itself on other sentences.

    Args:
        clips: at least two clips for each voice.

    Returns:
        Rows ``voice``, ``other``, ``distance``: every ordered pair, a voice against itself being its two halves.

    Raises:
        ValueError: a voice with fewer than two clips, or without a voiced frame.
    """
    for voice, spoken in clips.items():
        if len(spoken) < 2:
            raise ValueError(f"voice {voice!r} has {len(spoken)} clips: at least two are needed to know its spread")
    halves = {
        voice: np.stack([_description(spoken[::2]), _description(spoken[1::2])]) for voice, spoken in clips.items()
    }
    spread = np.sqrt(np.mean([np.square(half[0] - half[1]) for half in halves.values()], axis=0))
    spread = np.maximum(spread, 1e-9)

    def between(one: Vector, two: Vector) -> float:
        return float(np.sqrt(np.mean(np.square((one - two) / spread))))

    rows = []
    for voice, own in halves.items():
        for other, theirs in halves.items():
            distance = between(own[0], own[1]) if voice == other else between(own.mean(axis=0), theirs.mean(axis=0))
            rows.append({"voice": voice, "other": other, "distance": distance})
    return pl.DataFrame(rows)


def _description(clips: Sequence[SpokenClip]) -> Vector:
    import librosa

    joined = np.concatenate([resample(clip.samples, clip.sample_rate_hz, ANALYSIS_RATE_HZ) for clip in clips])
    coefficients = librosa.feature.mfcc(y=joined, sr=ANALYSIS_RATE_HZ, n_mfcc=N_MFCC)[1:]
    pitch_hz = median_f0_hz(clips)
    if np.isnan(pitch_hz):
        raise ValueError("a voice has no voiced frame in its clips: give longer sentences")
    semitones = 12 * np.log2(pitch_hz / 100.0)
    return np.concatenate([coefficients.mean(axis=1), [semitones]]).astype(np.float64)


def control_signals(sample_rate_hz: int = 24000) -> dict[str, Samples]:
    """Ten seconds each of what is no speech: silence, clicks, white noise at three levels, two tones."""
    n_samples = round(CONTROL_S * sample_rate_hz)
    clock_s = np.arange(n_samples) / sample_rate_hz
    clicks = np.zeros(n_samples)
    clicks[:: sample_rate_hz // 2] = 0.8
    signals = {"digital silence": np.zeros(n_samples), "clicks, 2 a second": clicks}
    for level_dbfs in (-60, -40, -20):
        noise = generator_from("control noise", level_dbfs).standard_normal(n_samples)
        signals[f"white noise, {level_dbfs} dBFS"] = noise * 10 ** (level_dbfs / 20)
    for frequency_hz in (120, 1000):
        signals[f"tone, {frequency_hz} Hz"] = 0.1 * np.sin(2 * np.pi * frequency_hz * clock_s)
    return {name: signal.astype(np.float32) for name, signal in signals.items()}


def detector_controls(vad: VoiceActivityDetector, recogniser: Recogniser, sample_rate_hz: int = 24000) -> pl.DataFrame:
    """What the detectors make of no speech.

    Returns:
        One row a signal: ``signal``, ``n_words`` (must be 0), ``vad_share`` and ``gate_share`` of its time that
        voice activity and the energy gate call active (the gate rightly opens for loud noise and tones).
    """
    rows = []
    for name, samples in control_signals(sample_rate_hz).items():
        regions = vad.speech_regions(samples, sample_rate_hz)
        gated = speech_intervals(samples, sample_rate_hz)
        rows.append(
            {
                "signal": name,
                "n_words": len(recogniser.words(samples, sample_rate_hz)),
                "vad_share": float((regions[:, 1] - regions[:, 0]).sum() / len(samples)),
                "gate_share": float((gated[:, 1] - gated[:, 0]).sum() / len(samples)),
            }
        )
    return pl.DataFrame(rows)
