"""Speech engines by the name a profile gives; each is loaded once per process."""

from functools import cache

from duplex_bench.speech.aligner import ForcedAligner
from duplex_bench.speech.cast_tts import CastTextToSpeech
from duplex_bench.speech.chunks import CachedRecogniser
from duplex_bench.speech.clip_cache import CachedTextToSpeech
from duplex_bench.speech.interfaces import Recogniser, TextToSpeech, TurnEndDetector, VoiceActivityDetector
from duplex_bench.speech.recogniser import EmbeddedRecogniser
from duplex_bench.speech.silero import SileroVoiceActivity
from duplex_bench.speech.smart_turn import SmartTurn
from duplex_bench.speech.whisper_engine import WhisperEngine, whisper_with_fallback
from duplex_bench.storage.object_store import ObjectStore

TEXT_TO_SPEECH = ("embedded",)
RECOGNISERS = ("whisper-base", "whisper-tiny.en", "whisper-base-or-tiny.en")
VOICE_ACTIVITY = ("silero",)
TURN_END = ("smart-turn",)


def text_to_speech(name: str = "embedded", store: ObjectStore | None = None) -> TextToSpeech:
    """A text-to-speech engine; with ``store``, clips spoken before are read from it."""
    _known(name, TEXT_TO_SPEECH, "text to speech")
    return _cast() if store is None else CachedTextToSpeech(_cast(), store)


def recogniser(name: str = "whisper-base", store: ObjectStore | None = None) -> Recogniser:
    """A recogniser with word times; with ``store``, stretches heard before are read from it.

    ``whisper-base-or-tiny.en`` takes tiny.en where base is not installed, and its engine id says so.
    """
    _known(name, RECOGNISERS, "recogniser")
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
def _recogniser(name: str) -> EmbeddedRecogniser:
    if name == "whisper-base-or-tiny.en":
        asr = whisper_with_fallback()
    else:
        asr = WhisperEngine("base" if name == "whisper-base" else "tiny.en")
    return EmbeddedRecogniser(_silero(), asr, ForcedAligner())
