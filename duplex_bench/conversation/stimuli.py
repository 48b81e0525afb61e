"""A point as an item: what a system hears and reads, and apart from it what scoring knows (P2 3.4, design 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.gate import GateSettings, intervals_s
from duplex_bench.audio.time import to_samples, to_seconds
from duplex_bench.conversation.candidates import WordIndex
from duplex_bench.conversation.label_types import SPEAKERS, Label, Speaker, Word, other
from duplex_bench.conversation.points import Point
from duplex_bench.conversation.sessions import Session
from duplex_bench.records.audio import AudioSlice, TimedWord
from duplex_bench.records.items import HistoryTurn, HumanReply, Item, Reference, Stimulus, Window
from duplex_bench.storage.blobs import BlobStore, from_pcm16

_CHANNELS = 2
_TIME_DIGITS = 6


class StimulusError(ValueError):
    """A point that does not fit the recording it was made from."""


@dataclass(frozen=True, slots=True)
class StimulusSettings:
    """What every system is given.

    Attributes:
        history_s: longest history before the active turn (P2: 164).
        identity_prompt: text that tells a system who it is; None without the probes.
        sample_rate_hz: rate of the stored recording and of the live stream (P2: 24 kHz).
        gate: the gate that measures the human reply, the one that measures systems.
        reply_playback: whether what the other person then said is heard behind a turn end, as far as the recorded reply
            goes (ours; P2 does not play it). Its sound crosses to the system then, its words never.
    """

    history_s: float = 164.0
    identity_prompt: str | None = None
    sample_rate_hz: int = 24_000
    gate: GateSettings = field(default_factory=GateSettings)
    reply_playback: bool = False

    def __post_init__(self) -> None:
        if self.history_s < 0:
            raise ValueError(f"history_s {self.history_s}: give 0 or more")


@dataclass(frozen=True, slots=True)
class SessionAudio:
    """A stored two-channel recording: PCM16 (n, 2), left speaker in column 0, and the blob that holds it."""

    source: str
    samples: npt.NDArray[np.int16]
    sample_rate_hz: int
    blobs: BlobStore

    def part(self, speaker: Speaker, start: int, stop: int) -> AudioSlice:
        """Samples [start, stop) of one speaker's channel."""
        channel = SPEAKERS.index(speaker)
        return self.blobs.slice_of(self.source, self.samples, self.sample_rate_hz, start, stop, channel)


def item_of(
    point: Point,
    session: Session,
    labels: Sequence[Label],
    words: Mapping[Speaker, Sequence[Word]],
    audio: SessionAudio,
    settings: StimulusSettings | None = None,
) -> Item:
    """The item of a point.

    Live is the active speaker's channel from the start of the active turn: at a pause to the end of the stretch in
    which the speaker resumes, at a turn end to the turn end. History is what lies before the active turn, at most
    ``history_s`` of it: both channels, and the completed turns as text. A turn still going when the active turn
    starts is in the history's audio but not in its text; of a turn that began before the history, the words inside
    it count. The other person's words in the history's audio stand beside it with their times.

    Raises:
        StimulusError: the recording has another rate or shape, or ends before the point's region.
    """
    chosen = settings or StimulusSettings()
    rate = chosen.sample_rate_hz
    _check(point, session, audio, rate)
    n_samples = len(audio.samples)
    live_start = to_samples(point.turn_start_s, rate)
    boundary = to_samples(point.boundary_s, rate)
    resume_end_s = point.boundary_s if point.resume_end_s is None else point.resume_end_s
    live_stop = min(to_samples(resume_end_s, rate), n_samples)
    pause_end = boundary if point.pause_end_s is None else to_samples(point.pause_end_s, rate)
    if not 0 <= live_start < boundary <= pause_end <= live_stop:
        raise StimulusError(
            f"session {session.session_id}, {point.kind} at {point.boundary_s:.3f} s: its live region "
            f"[{point.turn_start_s:.3f}, {resume_end_s:.3f}] s is not inside the recording of "
            f"{to_seconds(n_samples, rate):.3f} s; check the labels against the audio"
        )

    def on_timeline(sample: int) -> float:
        return to_seconds(sample - live_start, rate)

    index = {speaker: WordIndex(words[speaker]) for speaker in SPEAKERS}
    user, assistant = point.speaker, other(point.speaker)
    history_start = max(0, live_start - to_samples(chosen.history_s, rate))
    has_history = history_start < live_start
    stimulus = Stimulus(
        protocol=point.kind,
        live=audio.part(user, live_start, live_stop),
        identity_prompt=chosen.identity_prompt,
        history=history_turns(user, labels, index, history_start, live_start, rate) if has_history else (),
        history_user=audio.part(user, history_start, live_start) if has_history else None,
        history_assistant=audio.part(assistant, history_start, live_start) if has_history else None,
        after=_reply_heard(point, audio, live_stop) if chosen.reply_playback else None,
        history_words=history_words(index[assistant], history_start, live_start, rate),
    )
    window = Window(
        window_id=point.kind,
        kind=point.kind,
        start_s=on_timeline(boundary),
        end_s=on_timeline(pause_end),
        marks={"resume_end_s": on_timeline(live_stop)} if point.kind == "pause" else {},
        labels={"speaker": user},
    )
    transcript = [
        HistoryTurn("user", point.context_text, 0.0, on_timeline(boundary)),
    ]
    if point.kind == "pause":
        resumed = " ".join(index[user].inside(to_seconds(pause_end, rate), resume_end_s))
        transcript.append(HistoryTurn("user", resumed, on_timeline(pause_end), on_timeline(live_stop)))
    elif point.reply is not None:
        times = (on_timeline(to_samples(moment, rate)) for moment in (point.reply.start_s, point.reply.end_s))
        transcript.append(HistoryTurn("assistant", point.reply.text, *times))
    return Item(
        item_id=point.point_id,
        track="conversation",
        cluster=point.session_id,
        condition=point.kind,
        stimulus=stimulus,
        reference=Reference(
            windows=(window,),
            human_reply=_human_reply(point, audio, chosen),
            transcript=tuple(turn for turn in transcript if turn.text),
            attributes=_attributes(point, to_seconds(live_start - history_start, rate)),
        ),
        licence=session.licence,
        language=session.language,
    )


def _check(point: Point, session: Session, audio: SessionAudio, rate: int) -> None:
    where = f"session {session.session_id}"
    if point.session_id != session.session_id:
        raise StimulusError(f"{where}: the point belongs to session {point.session_id}")
    if audio.sample_rate_hz != rate:
        raise StimulusError(f"{where}: audio at {audio.sample_rate_hz} Hz where {rate} Hz is set; resample it first")
    if audio.samples.ndim != 2 or audio.samples.shape[1] != _CHANNELS or audio.samples.dtype != np.int16:
        raise StimulusError(
            f"{where}: audio is {audio.samples.dtype} of shape {audio.samples.shape}, int16 (n, 2) is wanted"
        )


def history_turns(
    user: Speaker,
    labels: Sequence[Label],
    words: Mapping[Speaker, WordIndex],
    start: int,
    stop: int,
    rate: int,
) -> tuple[HistoryTurn, ...]:
    """Turns that are over inside samples [start, stop), as text, with times on the clock of that stretch."""
    start_s, stop_s = to_seconds(start, rate), to_seconds(stop, rate)
    turns: list[HistoryTurn] = []
    for label in sorted(labels, key=lambda one: (one.start_s, one.end_s, one.speaker)):
        if label.kind != "turn" or label.end_s <= start_s or to_samples(label.end_s, rate) > stop:
            continue
        text = " ".join(words[label.speaker].inside(max(label.start_s, start_s), label.end_s))
        if text:
            turns.append(
                HistoryTurn(
                    role="user" if label.speaker == user else "assistant",
                    text=text,
                    start_s=round(max(label.start_s - start_s, 0.0), _TIME_DIGITS),
                    end_s=round(min(label.end_s, stop_s) - start_s, _TIME_DIGITS),
                )
            )
    return tuple(turns)


def history_words(words: WordIndex, start: int, stop: int, rate: int) -> tuple[TimedWord, ...]:
    """Words that lie wholly inside samples [start, stop), with times on the clock of that stretch."""
    start_s, stop_s = to_seconds(start, rate), to_seconds(stop, rate)
    return tuple(
        TimedWord(word.text, round(word.start_s - start_s, _TIME_DIGITS), round(word.end_s - start_s, _TIME_DIGITS))
        for word in words.whole(start_s, stop_s)
        if word.text.strip()
    )


def _human_reply(point: Point, audio: SessionAudio, settings: StimulusSettings) -> HumanReply | None:
    if point.reply is None:
        return None
    start = to_samples(point.reply.start_s, audio.sample_rate_hz)
    stop = min(to_samples(point.reply.end_s, audio.sample_rate_hz), len(audio.samples))
    part = audio.part(other(point.speaker), start, stop)
    samples = from_pcm16(audio.samples[start:stop, part.channel])
    found = intervals_s(samples, audio.sample_rate_hz, settings.gate)
    duration_s = float(found[-1, 1] - found[0, 0]) if len(found) else 0.0
    return HumanReply(text=point.reply.text, duration_s=duration_s, n_words=point.reply.n_words, audio=part)


def _reply_heard(point: Point, audio: SessionAudio, from_sample: int) -> AudioSlice | None:
    """The other person's channel from the turn end to the end of the recorded reply; None where there is none."""
    if point.kind != "turn_end" or point.reply is None:
        return None
    stop = min(to_samples(point.reply.end_s, audio.sample_rate_hz), len(audio.samples))
    return audio.part(other(point.speaker), from_sample, stop) if stop > from_sample else None


def _attributes(point: Point, history_s: float) -> dict[str, str | float | int | bool]:
    attributes: dict[str, str | float | int | bool] = {
        "speaker": point.speaker,
        "boundary_s": point.boundary_s,
        "context_s": point.boundary_s - point.turn_start_s,
        "n_context_words": point.n_context_words,
        "history_s": history_s,
        "ranking": point.ranking,
        "label_rule": point.label_rule,
        "label_confidence": point.label_confidence,
    }
    if point.pause_end_s is not None:
        attributes["pause_s"] = point.pause_end_s - point.boundary_s
    if point.reply is not None:
        attributes["reply_delay_s"] = point.reply.start_s - point.boundary_s
    if point.judge_score is not None:
        attributes["judge_score"] = point.judge_score
    return attributes
