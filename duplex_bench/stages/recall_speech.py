"""The question of a recall probe as sound, in the voice of the person who asks it (P2 3.3)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.audio.resample import resample
from duplex_bench.conversation.label_types import Speaker
from duplex_bench.speech import engines
from duplex_bench.speech.interfaces import SpokenClip, TextToSpeech
from duplex_bench.speech.quality import median_f0_hz
from duplex_bench.stages import conversation, corpus, progress
from duplex_bench.stages.recall import OFF
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.session_audio import StoredAudio
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import from_pcm16, to_pcm16

SPEECH_SCHEMA = {
    "question_id": pl.String, "session_id": pl.String, "asker": pl.String, "source": pl.String,
    "duration_s": pl.Float64, "voice": pl.String, "how": pl.String, "engine": pl.String, "error": pl.String,
}  # fmt: skip
_PITCH_SENTENCE = "We walked along the river in the evening and talked about nothing in particular."
_PITCH_S = 20.0
_PEAK = 0.95
Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Said:
    clip: SpokenClip
    voice: str
    how: str
    engine: str


def question_speech(workspace: Workspace, sessions: pl.DataFrame, questions: pl.DataFrame) -> StageResult:
    """Every question that is asked, spoken at the level of the asker's own speech; failures are counted with reasons.

    The voice is a clone of the asker where the profile names a cloning engine, else the embedded voice that a synthetic
    speaker has, else the embedded voice nearest in pitch; column ``how`` says which.
    """
    if not workspace.profile.conversation.recall.enabled:
        return StageResult(pl.DataFrame(schema=SPEECH_SCHEMA), {"spoken": 0}, note=OFF)
    rows: list[dict[str, object]] = []
    speaker = _Speaker(workspace)
    for session, stored in conversation.kept(sessions):
        asked = questions.filter((pl.col("session_id") == session.session_id) & (pl.col("dropped") == ""))
        for row in asked.iter_rows(named=True):
            base = {"question_id": row["question_id"], "session_id": session.session_id, "asker": row["asker"]}
            try:
                with progress.engine_clock.running():
                    rows.append(base | speaker.speak(session.session_id, stored, row["asker"], row["question"]))
            except ValueError as error:
                empty = dict.fromkeys(("source", "duration_s", "voice", "how", "engine"))
                rows.append(base | empty | {"error": str(error)})
    frame = pl.DataFrame(rows, schema=SPEECH_SCHEMA)
    spoken = frame.filter(pl.col("source").is_not_null())
    counts: dict[str, int | float | str] = {
        "spoken": spoken.height,
        "failed": frame.height - spoken.height,
        **{f"by_{how}": n for how, n in spoken["how"].value_counts(sort=True).iter_rows()},
    }
    errors = sorted(set(frame["error"].drop_nulls()))
    return StageResult(spoken, counts, preview=frame.drop("source"), note="\n".join(f"- {error}" for error in errors))


class _Speaker:
    """Speaks questions; knows the voices of synthetic speakers, and the pitch of the embedded ones once asked."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._profile = workspace.profile
        self._rate = workspace.profile.conversation.sample_rate_hz
        self._tts: TextToSpeech = engines.text_to_speech(self._profile.speech.text_to_speech, workspace.store)
        self._pitch_hz: dict[str, float] = {}
        self._voices: dict[tuple[str, str], str] = {}
        if self._profile.conversation.corpus.kind == "synthetic":
            for session in corpus.planted_sessions(workspace):
                self._voices[session.session_id, "left"] = session.left_voice
                self._voices[session.session_id, "right"] = session.right_voice

    def speak(self, session_id: str, stored: StoredAudio, asker: Speaker, text: str) -> dict[str, object]:
        """One row of the table but its names."""
        own = self._own_speech(stored, asker)
        said = self._said(session_id, asker, text, own)
        samples = resample(said.clip.samples, said.clip.sample_rate_hz, self._rate)
        level = _rms(own) / max(_rms(samples), 1e-9) if len(own) else 1.0
        loudest = float(np.max(np.abs(samples), initial=0.0))
        gain = min(level, _PEAK / loudest) if loudest > 0 else 1.0
        source = self._workspace.blobs.put_audio(to_pcm16(samples * gain), self._rate)
        return {"source": source, "duration_s": len(samples) / self._rate, "voice": said.voice, "how": said.how,
                "engine": said.engine, "error": None}  # fmt: skip

    def _own_speech(self, stored: StoredAudio, asker: Speaker) -> Samples:
        """The asker's own gated speech, end to end, up to the most that a clone takes."""
        samples, rate = self._workspace.blobs.read_audio(stored.source)
        channel = 0 if asker == "left" else 1
        spans = stored.left_s if asker == "left" else stored.right_s
        theirs = stored.right_s if asker == "left" else stored.left_s
        most_s = self._profile.conversation.recall.clone_reference_s[1]
        parts: list[npt.NDArray[np.int16]] = []
        total_s = 0.0
        for start_s, stop_s in spans:
            # Speech over the other's speech may carry the other's voice.
            if total_s >= most_s or any(start_s < stop and begin < stop_s for begin, stop in theirs):
                continue
            stop_s = min(stop_s, start_s + most_s - total_s)
            parts.append(samples[round(start_s * rate) : round(stop_s * rate), channel])
            total_s += stop_s - start_s
        return from_pcm16(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.float32)

    def _said(self, session_id: str, asker: Speaker, text: str, own: Samples) -> _Said:
        settings = self._profile.conversation.recall
        if settings.cloning:
            least_s = settings.clone_reference_s[0]
            if len(own) < least_s * self._rate:
                raise ValueError(
                    f"session {session_id}: {len(own) / self._rate:.1f} s of the {asker} speaker alone, a clone takes "
                    f"{least_s:g} s: lower conversation.recall.clone_reference_s or leave the session out"
                )
            cloning = engines.voice_cloning(settings.cloning)
            (result,) = cloning.speak_as([text], own, self._rate)
            if result.clip is None:
                raise ValueError(f"session {session_id}: the clone could not say {text!r}: {result.error}")
            return _Said(result.clip, f"clone of {session_id} {asker}", "clone", cloning.engine_id)
        voice, how = self._voices.get((session_id, asker)), "speaker's own embedded voice"
        if voice is None:
            voice, how = self._nearest(own), "embedded voice nearest in pitch"
        return _Said(self._tts.speak(text, voice), voice, how, self._tts.engine_id)

    def _nearest(self, own: Samples) -> str:
        if not self._pitch_hz:
            self._pitch_hz = {
                voice: median_f0_hz([self._tts.speak(_PITCH_SENTENCE, voice)]) for voice in self._tts.voices
            }
        clip = SpokenClip(own[: round(_PITCH_S * self._rate)], self._rate, ())
        pitch_hz = median_f0_hz([clip]) if len(own) else float("nan")
        known = {voice: hz for voice, hz in self._pitch_hz.items() if np.isfinite(hz)}
        if not known or not np.isfinite(pitch_hz):
            return self._tts.voices[0]
        return min(known, key=lambda voice: (abs(np.log(known[voice] / pitch_hz)), voice))


def _rms(samples: Samples) -> float:
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if len(samples) else 0.0
