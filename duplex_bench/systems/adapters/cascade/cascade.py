"""The cascade as a system: 20 ms units at 24 kHz, not in lockstep; all its decisions are on the stream's clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from duplex_bench.audio.resample import resample
from duplex_bench.contract.card_settings import settings_from
from duplex_bench.contract.types import OpenRequest, Out, SessionStats, Spec, checked_unit, refuse_unsupported
from duplex_bench.rollout.playback import Samples
from duplex_bench.speech.interfaces import Recogniser, TextToSpeech, TurnEndDetector
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.systems.adapters.cascade.endpointers import Endpointer, SemanticEndpointer, SilenceEndpointer
from duplex_bench.systems.adapters.cascade.listening import RATE_HZ, UNIT_S, UNIT_SAMPLES, Listening, Stretch
from duplex_bench.systems.adapters.cascade.replies import ReplyRule

SPEC = Spec(
    in_rate_hz=RATE_HZ,
    out_rate_hz=RATE_HZ,
    unit_in_samples=UNIT_SAMPLES,
    capabilities=frozenset({"seedable", "text_prompt", "text_history"}),
)


@dataclass(frozen=True, slots=True)
class CascadeSettings:
    """What a card may set; all ours, those of the endpointers after the hosted systems of P2.

    Attributes:
        endpointer: "silence" or "semantic".
        silence_s: Silence that ends a turn for the silence endpointer.
        check_after_s: Silence after which the semantic endpointer asks its detector.
        threshold: Probability from which the detector's turn is complete.
        cap_s: Silence that ends any turn for the semantic endpointer.
        latency_s: From the endpoint to the first sample of the reply: declared, on the stream's clock.
        barge_in_s: The cascade stops when another speaks over it for so long.
        cancel_on_speech: Drop a reply that has not begun when someone speaks again before it does.
        join_s: Stretches of speech with less silence between them belong to one turn.
        voice: Voice of the embedded cast.
        recogniser: Name in ``speech.engines``.
    """

    endpointer: Literal["silence", "semantic"] = "silence"
    silence_s: float = 0.5
    check_after_s: float = 0.2
    threshold: float = 0.5
    cap_s: float = 2.0
    latency_s: float = 0.5
    barge_in_s: float = 0.5
    cancel_on_speech: bool = True
    join_s: float = 1.0
    voice: str = "narrator"
    recogniser: str = "whisper-tiny.en"

    def __post_init__(self) -> None:
        if self.endpointer not in ("silence", "semantic"):
            raise ValueError(f"cascade: endpointer is 'silence' or 'semantic', got {self.endpointer!r}")
        if self.latency_s < 0 or self.barge_in_s <= 0 or self.join_s <= 0:
            raise ValueError("cascade: latency_s cannot be negative, barge_in_s and join_s must be positive")


@dataclass(frozen=True, slots=True)
class Parts:
    """The engines of a cascade; ``turn_end`` only for the semantic endpointer."""

    recogniser: Recogniser
    voice: TextToSpeech
    turn_end: TurnEndDetector | None = None


class Cascade:
    """Listens, recognises, decides, speaks; stops when spoken over.

    Args:
        settings: See ``CascadeSettings``.
        parts: The engines.
        rule: What is said to what was heard.

    Raises:
        ValueError: A semantic endpointer without a turn-end detector.
    """

    spec: Spec = SPEC

    def __init__(self, settings: CascadeSettings, parts: Parts, rule: ReplyRule | None = None) -> None:
        if settings.endpointer == "semantic" and parts.turn_end is None:
            raise ValueError("cascade: the semantic endpointer needs a turn-end detector")
        self.settings = settings
        self.parts = parts
        self.rule = rule or ReplyRule()

    def new_session(self) -> "CascadeSession":
        """A session that has heard nothing."""
        return CascadeSession(self)

    def endpointer(self) -> Endpointer:
        """A fresh endpointer as set."""
        settings = self.settings
        if settings.endpointer == "semantic" and self.parts.turn_end is not None:
            return SemanticEndpointer(
                self.parts.turn_end, RATE_HZ, settings.check_after_s, settings.threshold, settings.cap_s
            )
        return SilenceEndpointer(settings.silence_s)

    def speak(self, text: str) -> Samples:
        """``text`` as audio at 24 kHz."""
        clip = self.parts.voice.speak(text, self.settings.voice)
        return resample(clip.samples, clip.sample_rate_hz, RATE_HZ)


@dataclass(slots=True)
class _Reply:
    """A reply that was decided on: it begins at ``due_s``, ``sent`` samples of it went out."""

    text: str
    due_s: float
    response_id: str
    audio: Samples | None = None
    start_s: float = 0.0
    sent: int = 0

    @property
    def end_s(self) -> float:
        return self.start_s + (0 if self.audio is None else len(self.audio)) / RATE_HZ


class CascadeSession:
    """One conversation. Replies go out in small chunks, faster than they are heard, as from a server."""

    CHUNK_SAMPLES = 2_400
    _EPSILON_S = 1e-9

    def __init__(self, cascade: Cascade) -> None:
        self._cascade = cascade
        self._settings = cascade.settings
        self._listening = Listening(cascade.parts.recogniser)
        self._endpointer = cascade.endpointer()
        self._told: list[str] = []
        self._reply: _Reply | None = None
        self._responses = 0
        self._units = 0
        self._empty = 0
        # Stretches before this index were answered or left alone for good.
        self._decided = 0
        self._judged_until = 0
        self._is_open = False

    def open(self, request: OpenRequest) -> None:
        """Take a prompt and turns of history as text; raises UnsupportedError for anything else."""
        refuse_unsupported(request, SPEC)
        if request.prompt.text:
            self._told.append(request.prompt.text)
        self._told += [part.text for part in request.history if part.text]
        self._is_open = True

    def step(self, unit: Samples) -> list[Out]:
        """Hear one unit and return what became audible by its end; raises UnsupportedError for a partial unit."""
        if not self._is_open:
            raise ValueError("step before open")
        checked_unit(unit, SPEC)
        self._listening.hear(unit.copy())
        number = self._units
        self._units += 1
        outs = self._react(number)
        self._empty += not outs
        return outs

    def close(self) -> SessionStats:
        """How many units were heard."""
        return SessionStats(units=self._units, empty_steps=self._empty)

    def _react(self, number: int) -> list[Out]:
        now_s = self._listening.now_s
        outs: list[Out] = []
        reply = self._reply
        if reply is not None and reply.audio is not None:
            if self._spoken_over(reply, now_s):
                self._reply = None
                return [Out("flush", number, response_id=reply.response_id), Out("state", number, state="listen")]
            if now_s >= reply.end_s:
                self._reply = reply = None
                outs.append(Out("state", number, state="listen"))
        elif reply is not None and self._listening.is_speech and self._settings.cancel_on_speech:
            self._reply = reply = None
        if self._listening.is_speech:
            self._endpointer.resumed()
        if reply is None:
            self._decide(now_s)
            reply = self._reply
        if reply is not None and now_s >= reply.due_s - self._EPSILON_S:
            outs += self._speak(reply, number, now_s)
        return outs

    def _spoken_over(self, reply: _Reply, now_s: float) -> bool:
        if not self._listening.is_speech or now_s >= reply.end_s:
            return False
        return now_s - max(self._overlap_start_s(), reply.start_s) >= self._settings.barge_in_s - self._EPSILON_S

    def _overlap_start_s(self) -> float:
        # The stretch, not the last onset: a speaker breathes between words.
        return self._listening.stretches[-1].start * UNIT_S

    def _decide(self, now_s: float) -> None:
        listening = self._listening
        silence_s = listening.silence_s
        if silence_s is None or listening.is_speech or not listening.stretches:
            return
        stop = listening.stretches[-1].stop
        if stop == self._judged_until or not self._endpointer.ended(silence_s, listening.last):
            return
        self._judged_until = stop
        turn = self._turn()
        first = turn[0]
        earlier = [*self._told, *(listening.text_of(stretch) for stretch in listening.stretches[:first])]
        text = " ".join(listening.text_of(listening.stretches[index]) for index in turn)
        words = self._cascade.rule.reply(earlier, text)
        if words is not None:
            self._responses += 1
            self._reply = _Reply(words, now_s + self._settings.latency_s, f"r{self._responses}")

    def _turn(self) -> list[int]:
        """Indices of the stretches of the turn that has just ended, none of which was answered before."""
        stretches: list[Stretch] = self._listening.stretches
        first = len(stretches) - 1
        while (
            first > self._decided
            and (stretches[first].start - stretches[first - 1].stop) * UNIT_S < self._settings.join_s
        ):
            first -= 1
        return list(range(first, len(stretches)))

    def _speak(self, reply: _Reply, number: int, now_s: float) -> list[Out]:
        outs: list[Out] = []
        if reply.audio is None:
            reply.audio = self._cascade.speak(reply.text)
            reply.start_s = now_s
            self._decided = len(self._listening.stretches)
            outs += [
                Out("state", number, state="speak", response_id=reply.response_id),
                Out("text", number, text=reply.text, response_id=reply.response_id),
            ]
        chunk = reply.audio[reply.sent : reply.sent + self.CHUNK_SAMPLES]
        reply.sent += len(chunk)
        if len(chunk):
            outs.append(Out("audio", number, pcm=chunk, response_id=reply.response_id))
        return outs


def create(settings: Mapping[str, Any], store: ObjectStore | None = None) -> Cascade:
    """The cascade with the embedded engines.

    Args:
        settings: Fields of ``CascadeSettings``.
        store: Cache of what was recognised and spoken, shared by all cascades.

    Raises:
        ValueError: Unknown settings, or values that make no sense.
    """
    from duplex_bench.speech import engines

    made = settings_from(CascadeSettings, settings, "cascade")
    parts = Parts(
        engines.recogniser(made.recogniser, store),
        engines.text_to_speech("embedded", store),
        engines.turn_end("smart-turn") if made.endpointer == "semantic" else None,
    )
    if made.voice not in parts.voice.voices:
        raise ValueError(f"cascade: no voice {made.voice!r}; the cast has {', '.join(parts.voice.voices)}")
    return Cascade(made, parts)
