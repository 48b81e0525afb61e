"""A profile: every number a run may change, in one frozen object, read from TOML with unknown keys refused."""

import dataclasses
import re
import tomllib
import types
import typing
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError

from duplex_bench.audio.gate import GateSettings
from duplex_bench.conversation.curation_rules import CurationSettings
from duplex_bench.conversation.flags import FlagRules
from duplex_bench.conversation.gate_calibration import CalibrationSettings
from duplex_bench.conversation.generator import GeneratorSettings
from duplex_bench.conversation.labels import LabelRules
from duplex_bench.conversation.ranking import RankingSettings
from duplex_bench.conversation.recall import RecallSettings
from duplex_bench.conversation.scoring import ScoringSettings as ConversationScoring
from duplex_bench.judging.model_judge import JudgeSettings
from duplex_bench.multiparty.acoustics import Acoustics, AcousticSettings
from duplex_bench.multiparty.checked_speech import ConstructionSettings
from duplex_bench.multiparty.grammar import GrammarSettings
from duplex_bench.multiparty.llm.settings import LlmSettings
from duplex_bench.multiparty.rules import ScoringRules
from duplex_bench.multiparty.scenes import SceneLayout
from duplex_bench.multiparty.transcript_reference import ReferenceSettings
from duplex_bench.reporting.analysis import MultipartyAnalysis
from duplex_bench.rollout.plan import ProtocolSettings
from duplex_bench.speech.projection.settings import ProjectionSettings
from duplex_bench.storage.digests import digest_value
from duplex_bench.textmodels.settings import CallSettings, ModelSettings

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# Characters of a wrong value that an error message shows.
_SHOWN = 60


class ProfileError(ValueError):
    """The profile cannot be used; the message names file, key and remedy."""


@dataclass(frozen=True, slots=True)
class SpeechSettings:
    """Which engines speak and listen. ``recogniser`` transcribes systems; the cascades bring their own.

    ``gap_fill`` finds the words of a corpus that its transcripts lack; empty: the recogniser. ``projection`` doubts
    labels where its model expects another floor holder; without weights there are no such flags.
    """

    text_to_speech: str = "embedded"
    recogniser: str = "whisper-base"
    gap_fill: str = ""
    voice_activity: str = "silero"
    projection: ProjectionSettings = field(default_factory=ProjectionSettings)


@dataclass(frozen=True, slots=True)
class MultipartySettings:
    """Scripts and scenes of the multiparty track. ``scenario_file`` names a user's own scenarios (else the engine's).

    ``engine`` writes scripts: the embedded grammar, or the text model of ``llm``.
    ``reference`` reads the transcript instead of hearing the scene.
    ``detector`` says whose speech intervals are scored: the voice detector as in the paper, or the energy gate.
    ``acoustics`` lists the conditions that every scene is heard in; all but clean are ours and paired with it.
    """

    grammar: GrammarSettings
    engine: Literal["grammar", "llm"] = "grammar"
    llm: LlmSettings | None = None
    reference: ReferenceSettings = field(default_factory=ReferenceSettings)
    layout: SceneLayout = field(default_factory=SceneLayout)
    scoring: ScoringRules = field(default_factory=ScoringRules)
    detector: Literal["vad", "gate"] = "vad"
    scenario_file: str = ""
    acoustics: tuple[Acoustics, ...] = ("clean",)
    acoustic: AcousticSettings = field(default_factory=AcousticSettings)
    construction: ConstructionSettings = field(default_factory=ConstructionSettings)
    analysis: MultipartyAnalysis = field(default_factory=MultipartyAnalysis)

    def __post_init__(self) -> None:
        if "clean" not in self.acoustics or len(set(self.acoustics)) != len(self.acoustics):
            raise ValueError("acoustics pairs other conditions with clean: list clean, and each other one once")
        if self.engine == "llm" and self.llm is None:
            raise ValueError("engine llm needs a table llm with a model (vendor, model)")

    @property
    def n_pairs(self) -> int:
        """How many pairs the chosen engine is asked for."""
        return self.llm.n_pairs if self.engine == "llm" and self.llm else self.grammar.n_pairs


@dataclass(frozen=True, slots=True)
class CorpusSettings:
    """Where conversations come from: generated ones in the Seamless format, a Seamless folder, or two-channel files.

    ``file_list`` names interactions of a Seamless folder, one a line (or the release's CSV), so that only the archives
    that hold them are needed. ``part`` keeps one part of a split in which no speaker is in two; ``parts`` are its names
    and shares (the release's own splits share speakers).
    """

    kind: Literal["synthetic", "seamless", "two_channel"] = "synthetic"
    path: str = ""
    licence: str = ""
    file_list: str = ""
    part: str = ""
    parts: tuple[tuple[str, float], ...] = (("train", 0.7), ("dev", 0.15), ("test", 0.15))
    min_duration_s: float = 420.0
    liveliness_cutoff: float = 0.75
    liveliness_top_share: float | None = None


@dataclass(frozen=True, slots=True)
class ConversationSettings:
    """Corpus, labels, funnel and draw of the conversation track.

    ``point_judge`` reads around every point that passed the gates (P2: GPT-4o); None: the heuristic ranking alone.
    With ``reply_playback`` what the other person then said is heard behind a turn end (ours; not in P2).
    """

    generator: GeneratorSettings
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    labels: LabelRules = field(default_factory=LabelRules)
    flags: FlagRules = field(default_factory=FlagRules)
    curation: CurationSettings = field(default_factory=CurationSettings)
    ranking: RankingSettings = field(default_factory=RankingSettings)
    scoring: ConversationScoring = field(default_factory=ConversationScoring)
    recall: RecallSettings = field(default_factory=RecallSettings)
    point_judge: ModelSettings | None = None
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)
    history_s: float = 164.0
    sample_rate_hz: int = 24_000
    gap_fill_min_s: float = 0.35
    reply_playback: bool = False


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """How systems are run: protocols, repeats, attempts at what failed in transport.

    ``budget_usd`` is the most that all runs on this data folder may spend on sessions with vendors; None sets no limit.
    """

    protocols: ProtocolSettings = field(default_factory=ProtocolSettings)
    stream_rate_hz: int = 24_000
    repeats: int = 1
    attempts: int = 3
    budget_usd: float | None = None


@dataclass(frozen=True, slots=True)
class StatisticsSettings:
    """Resampling of clusters and the level of intervals."""

    n_resamples: int = 2000
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything a run may change. ``systems`` names the cards to run; empty means all that can run here.

    ``limit`` is the most items of each track, drawn by hash; ``processes`` how many work at once (0: one per core).
    """

    name: str
    seed: int
    multiparty: MultipartySettings
    conversation: ConversationSettings
    speech: SpeechSettings = field(default_factory=SpeechSettings)
    gate: GateSettings = field(default_factory=GateSettings)
    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)
    judge: JudgeSettings = field(default_factory=JudgeSettings)
    text_calls: CallSettings = field(default_factory=CallSettings)
    systems: tuple[str, ...] = ()
    limit: int | None = None
    processes: int = 0

    @property
    def digest(self) -> str:
        """Digest of every setting that can change a number (not of how many processes compute it)."""
        return digest_value("profile", dataclasses.replace(self, processes=0))


def shipped_profiles() -> tuple[str, ...]:
    """Names of the profiles inside the package."""
    folder = resources.files("duplex_bench.profiles")
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_profile(name_or_path: str) -> Profile:
    """A shipped profile by name, or a TOML file by path.

    Raises:
        ProfileError: no such profile, no TOML, an unknown key, or a value of the wrong type.
    """
    if name_or_path in shipped_profiles():
        source = f"{name_or_path}.toml"
        text = (resources.files("duplex_bench.profiles") / source).read_text("utf-8")
    else:
        path = Path(name_or_path)
        known = ", ".join(shipped_profiles())
        if path.is_dir():
            raise ProfileError(f"{name_or_path} is a folder: name one of {known}, or a TOML file (perhaps one in it)")
        if not path.is_file():
            raise ProfileError(f"{name_or_path}: no such profile: name one of {known}, or a TOML file")
        source = str(path)
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise ProfileError(f"{source}: not TOML: it is not UTF-8 text; save it as UTF-8") from error
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{source}: not TOML: {error}") from error
    return parse_profile(table, source)


def parse_profile(table: dict[str, Any], source: str) -> Profile:
    """The profile that a TOML table describes; ``source`` names it in errors."""
    _refuse_unknown(Profile, table, source, "")
    try:
        profile: Profile = TypeAdapter(Profile).validate_python(table)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "missing":
            raise ProfileError(f"{source}: key {where} is missing: add it (profiles/demo.toml has one)") from error
        found = repr(first.get("input"))
        shown = found if len(found) <= _SHOWN else f"{found[:_SHOWN]}..."
        raise ProfileError(f"{source}: key {where}: {first['msg']} (found {shown})") from error
    # Folders are named by it, and a profile may come from elsewhere.
    if not _NAME.fullmatch(profile.name):
        raise ProfileError(
            f"{source}: key name: {profile.name[:_SHOWN]!r}: use letters, digits, '.', '_' and '-' (to 64)"
        )
    return profile


def _refuse_unknown(kind: Any, table: dict[str, Any], source: str, prefix: str) -> None:
    hints = typing.get_type_hints(kind)
    known = {entry.name for entry in dataclasses.fields(kind)}
    for key, value in table.items():
        if key not in known:
            raise ProfileError(f"{source}: unknown key {prefix}{key}: known here are {', '.join(sorted(known))}")
        inner = _dataclass_in(hints[key])
        if inner is not None and isinstance(value, dict):
            _refuse_unknown(inner, value, source, f"{prefix}{key}.")


def _dataclass_in(hint: Any) -> Any:
    if dataclasses.is_dataclass(hint):
        return hint
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next((part for part in typing.get_args(hint) if dataclasses.is_dataclass(part)), None)
    return None
