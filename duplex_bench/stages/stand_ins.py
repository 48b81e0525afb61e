"""What each embedded engine does here, and what a full-size run would use in its place."""

from typing import Final

from duplex_bench.reporting.inputs import StandIn
from duplex_bench.speech import engines
from duplex_bench.stages.profile import Profile

STAND_INS: Final = (
    StandIn(
        "voices",
        "hibari heart with four recipes of it, joe (Piper)",
        "Qwen3-TTS",
        "Apache-2.0, CC0",
        "clean American voices, four of five from one model: speaker differences are smaller than between people",
    ),
    StandIn(
        "words of systems",
        "Whisper base int8 with forced alignment by PocketSphinx",
        "the papers' Whisper transcripts",
        "MIT, BSD-2-Clause",
        "text and voices come from matched models: error rates here say little about real people",
    ),
    StandIn("voice activity", "silero VAD 6.2.3", "the same", "MIT", "onsets +22 ms, offsets +60 ms late"),
    StandIn(
        "answer judge",
        "strict word matcher",
        "Claude Opus 5",
        "this project",
        "a right answer in other words counts as wrong",
    ),
    StandIn(
        "acknowledgement judge",
        "closed lexicon",
        "Claude Opus 5",
        "this project",
        "what the lexicon does not know has no verdict; its share is printed",
    ),
    StandIn(
        "transcript reference",
        "a rule on names and openers",
        "Gemini 3.1 Pro",
        "this project",
        "its cues are those of the scripts: its scores say nothing about models",
    ),
    StandIn("point judge", "heuristic ranking", "GPT-4o", "this project", "incoherent windows are not rejected"),
    StandIn(
        "doubtful labels",
        "two heuristics",
        "the same beside a voice activity projection model",
        "this project",
        "no label is flagged because a model expects another floor holder: no weights are configured",
    ),
    StandIn("scripts", "grammar engine", "a text model", "this project", "sentences recur; answers are computed"),
    StandIn(
        "conversations",
        "generated sessions in the Seamless Interaction format",
        "Seamless Interaction",
        "this project",
        "planted turns and pauses: these are checks of the instrument, not results about people",
    ),
    StandIn(
        "sentence vectors", "MiniLM L6 v2 int8", "the same in float32", "Apache-2.0", "cosines move by up to 0.016"
    ),
    StandIn(
        "systems",
        "cascades of silero or smart-turn, Whisper tiny.en, a reply rule and hibari",
        "hosted realtime systems",
        "this project",
        "they listen and speak, but reply by rule",
    ),
)


def stand_ins_of(profile: Profile) -> tuple[StandIn, ...]:
    """The stand-ins that a run under ``profile`` uses: none where the profile names the real thing."""
    real: set[str] = set()
    if profile.judge.engine == "model":
        real |= {"answer judge", "acknowledgement judge"}
    if profile.multiparty.engine == "llm" or profile.multiparty.scenario_file:
        real.add("scripts")
    if profile.multiparty.reference.engine != "embedded":
        real.add("transcript reference")
    if profile.conversation.point_judge is not None:
        real.add("point judge")
    if profile.speech.projection.weights:
        real.add("doubtful labels")
    if engines.runs_apart(profile.speech.text_to_speech):
        real.add("voices")
    if engines.runs_apart(profile.speech.recogniser):
        real.add("words of systems")
    return tuple(one for one in STAND_INS if one.role not in real)
