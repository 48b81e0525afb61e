"""Speech engines by the name a profile gives; each is loaded once per process.

An engine of a foreign environment is named with its settings file, ``qwen3-tts:engines/tts.toml``: its name says all
that a worker process needs to make it.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial

from duplex_bench.speech.aligner import ForcedAligner
from duplex_bench.speech.cast_tts import CastTextToSpeech
from duplex_bench.speech.chunks import CachedRecogniser
from duplex_bench.speech.clip_cache import CachedTextToSpeech
from duplex_bench.speech.interfaces import (
    ActivityProjection,
    Recogniser,
    TextToSpeech,
    TurnEndDetector,
    VoiceActivityDetector,
    VoiceCloning,
)
from duplex_bench.speech.projection.engine import VoiceActivityProjection
from duplex_bench.speech.projection.settings import ProjectionSettings
from duplex_bench.speech.qwen_asr import QwenRecogniser
from duplex_bench.speech.qwen_settings import QwenAsrSettings, QwenTtsSettings, load_settings
from duplex_bench.speech.qwen_tts import QwenTextToSpeech, QwenVoiceCloning
from duplex_bench.speech.recogniser import EmbeddedRecogniser
from duplex_bench.speech.silero import SileroVoiceActivity
from duplex_bench.speech.smart_turn import SmartTurn
from duplex_bench.speech.whisper_engine import WhisperEngine, whisper_with_fallback
from duplex_bench.storage.object_store import ObjectStore

TEXT_TO_SPEECH = ("embedded", "qwen3-tts")
RECOGNISERS = ("whisper-base", "whisper-tiny.en", "whisper-base-or-tiny.en", "qwen3-asr")
VOICE_ACTIVITY = ("silero",)
TURN_END = ("smart-turn",)
VOICE_CLONING = ("qwen3-tts-clone",)
FOREIGN = ("qwen3-tts", "qwen3-tts-clone", "qwen3-asr")


def text_to_speech(name: str = "embedded", store: ObjectStore | None = None) -> TextToSpeech:
    """A text-to-speech engine; with ``store``, clips spoken before are read from it."""
    engine = _text_to_speech(name)
    return engine if store is None else CachedTextToSpeech(engine, store)


def speak_ahead(name: str, store: ObjectStore, lines: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Put (text, voice) pairs into ``store`` in batches, where the engine speaks in batches; errors by pair."""
    return CachedTextToSpeech(_text_to_speech(name), store).speak_ahead(lines)


def voice_cloning(name: str) -> VoiceCloning:
    """An engine that speaks in the voice of a recording."""
    return _voice_cloning(name)


def runs_apart(name: str) -> bool:
    """Whether the engine runs in an environment of its own: one worker, used from one process, is then enough."""
    return name.partition(":")[0] in FOREIGN


def recogniser(name: str = "whisper-base", store: ObjectStore | None = None) -> Recogniser:
    """A recogniser with word times; with ``store``, stretches heard before are read from it.

    ``whisper-base-or-tiny.en`` takes tiny.en where base is not installed, and its engine id says so.
    """
    engine = _recogniser(name)
    return engine if store is None else CachedRecogniser(engine, store, _silero())


def voice_activity(name: str = "silero") -> VoiceActivityDetector:
    """A voice activity detector."""
    _known(name, VOICE_ACTIVITY, "voice activity detector")
    return _silero()


def turn_end(name: str = "smart-turn") -> TurnEndDetector:
    """A turn-end detector."""
    _known(name, TURN_END, "turn-end detector")
    return _smart_turn()


@cache
def activity_projection(settings: ProjectionSettings) -> ActivityProjection:
    """The projection model whose weights the settings name."""
    return VoiceActivityProjection(settings)


def _known(name: str, names: tuple[str, ...], kind: str) -> None:
    if name not in names:
        raise ValueError(f"no {kind} named {name!r}: choose one of {', '.join(names)}")


@cache
def _cast() -> CastTextToSpeech:
    return CastTextToSpeech()


@cache
def _silero() -> SileroVoiceActivity:
    return SileroVoiceActivity()


@cache
def _smart_turn() -> SmartTurn:
    return SmartTurn()


@cache
def _recogniser(name: str) -> Recogniser:
    if (path := _settings_path(name, RECOGNISERS, "recogniser")) is not None:
        return QwenRecogniser(_silero(), load_settings(path, QwenAsrSettings))
    if name == "whisper-base-or-tiny.en":
        asr = whisper_with_fallback()
    else:
        asr = WhisperEngine("base" if name == "whisper-base" else "tiny.en")
    return EmbeddedRecogniser(_silero(), asr, ForcedAligner())


@cache
def _text_to_speech(name: str) -> TextToSpeech:
    path = _settings_path(name, TEXT_TO_SPEECH, "text to speech")
    if path is None:
        return _cast()
    settings = load_settings(path, QwenTtsSettings)
    return QwenTextToSpeech(settings, _checker(settings))


@cache
def _voice_cloning(name: str) -> QwenVoiceCloning:
    path = _settings_path(name, VOICE_CLONING, "voice cloning")
    if path is None:
        raise ValueError(f"no voice cloning named {name!r}: choose one of {', '.join(VOICE_CLONING)}")
    settings = load_settings(path, QwenTtsSettings)
    return QwenVoiceCloning(settings, _checker(settings))


def _checker(settings: QwenTtsSettings) -> Callable[[], Recogniser] | None:
    checked_by = settings.rules.checked_by
    return partial(_recogniser, checked_by) if checked_by else None


def _settings_path(name: str, names: tuple[str, ...], kind: str) -> str | None:
    """The settings file of a foreign engine, None for an embedded one.

    Raises:
        ValueError: no such engine, or a foreign one without its file.
    """
    plain, colon, path = name.partition(":")
    _known(plain, names, kind)
    if plain in FOREIGN and not path:
        raise ValueError(
            f"{kind} {plain!r} needs its settings file: write {plain}:path/to/settings.toml (docs/qwen.md)"
        )
    if plain not in FOREIGN and colon:
        raise ValueError(f"{kind} {plain!r} takes no settings file: leave out {':' + path!r}")
    return path or None
