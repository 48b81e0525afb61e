"""Settings of the Qwen3 engines: a TOML file that says which environment and model to use, and how."""

import shutil
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from duplex_bench.speech.foreign import Timeouts
from duplex_bench.storage.digests import digest_file, digest_value

# What requirements/qwen-tts.lock and qwen-asr.lock install; a worker with another version refuses to start.
TTS_PACKAGE_VERSION = "0.1.1"
ASR_PACKAGE_VERSION = "0.0.6"

# The package's voices by the names that scenes use (ours): its two English-native ones first, no dialect speakers.
DEFAULT_VOICES: Final = {"a": "Ryan", "b": "Aiden", "c": "Serena", "d": "Vivian", "narrator": "Ono_Anna"}

Dtype = Literal["bfloat16", "float16", "float32"]


class EngineSettingsError(ValueError):
    """An engine's settings file cannot be used; the message names file, key and remedy."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class QwenRuntime(_Table):
    """Where an engine runs. None of this but ``device`` and ``dtype`` enters its id.

    ``interpreter`` is the Python of its own environment; ``device`` as torch names it ("cpu", "cuda:0");
    ``attention`` one of the package's implementations, empty for its default. Timeouts in seconds (ours).
    """

    interpreter: str
    device: str = "cuda:0"
    dtype: Dtype = "bfloat16"
    attention: str = ""
    start_timeout_s: float = 900.0
    answer_timeout_s: float = 900.0

    @property
    def timeouts(self) -> Timeouts:
        """For the worker's client."""
        return Timeouts(self.start_timeout_s, self.answer_timeout_s)


class SpeakingRules(_Table):
    """How speech is asked for and when a clip is refused (all ours).

    The expected length of a text is its letters, a digit counting as five, at ``letters_per_second``. Generation is
    capped at ``cap_ratio`` times that, at least ``cap_at_least_codes`` codes of 80 ms; a clip that reaches its cap has
    no end and is refused. So is one that is, trimmed, under ``least_ratio`` of the expected length, and one in
    which ``checked_by`` (a recogniser's name; empty: no check) misses more than ``most_word_errors`` of its words.
    A refused text is spoken again with another seed, ``attempts`` times in all.
    """

    batch_size: int = Field(default=8, ge=1)
    attempts: int = Field(default=3, ge=1)
    seed: int = 0
    letters_per_second: float = Field(default=12.0, gt=0)
    cap_ratio: float = Field(default=2.0, gt=0)
    cap_at_least_codes: int = Field(default=25, ge=2)
    least_ratio: float = Field(default=0.3, ge=0)
    checked_by: str = "whisper-base"
    most_word_errors: float = Field(default=0.34, ge=0)
    sampling: dict[str, bool | int | float] = Field(default_factory=dict)


class QwenTtsSettings(_Table):
    """A Qwen3-TTS engine: ``model`` is the folder of a CustomVoice checkpoint (or Base, for cloning)."""

    runtime: QwenRuntime
    model: str
    language: str = "English"
    voices: dict[str, str] = Field(default_factory=lambda: dict(DEFAULT_VOICES), min_length=1)
    rules: SpeakingRules = SpeakingRules()

    @model_validator(mode="after")
    def _voices_differ(self) -> Self:
        if len({speaker.lower() for speaker in self.voices.values()}) != len(self.voices):
            raise ValueError("two voices have the same speaker, and would not be told apart")
        return self

    @property
    def digest(self) -> str:
        """Digest of what can change a sample, the paths and timeouts left out."""
        return digest_value(
            "qwen tts", self.language, self.voices, self.rules.model_dump(), self.runtime.device, self.runtime.dtype,
            self.runtime.attention,
        )  # fmt: skip


class QwenAsrSettings(_Table):
    """A Qwen3-ASR engine: folders of a recogniser and of Qwen3-ForcedAligner.

    ``most_tokens`` bounds the text of an utterance (512 is the package's own), ``batch_size`` how many utterances are
    heard in one call (ours).
    """

    runtime: QwenRuntime
    model: str
    aligner: str
    language: str = "English"
    most_tokens: int = Field(default=512, ge=1)
    batch_size: int = Field(default=8, ge=1)

    @property
    def digest(self) -> str:
        """Digest of what can change a word, the paths and timeouts left out."""
        return digest_value(
            "qwen asr", self.language, self.most_tokens, self.batch_size, self.runtime.device, self.runtime.dtype,
            self.runtime.attention,
        )  # fmt: skip


Settings = TypeVar("Settings", QwenTtsSettings, QwenAsrSettings)


def load_settings(path: str, kind: type[Settings]) -> Settings:
    """Settings of ``kind`` from a TOML file; its paths are seen from the folder that the file lies in.

    Raises:
        EngineSettingsError: no such file, no TOML, an unknown key, a missing key, a wrong value, or no such
            interpreter.
    """
    file = Path(path)
    if not file.is_file():
        raise EngineSettingsError(f"{path}: no such file: name the engine's settings as docs/qwen.md shows")
    try:
        settings = kind.model_validate(tomllib.loads(file.read_text("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EngineSettingsError(f"{path}: not TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise EngineSettingsError(f"{path}: {where}: {first['msg']}: docs/qwen.md lists the keys") from error
    folder = file.absolute().parent
    interpreter = settings.runtime.interpreter
    # A bare command is looked up on PATH, as a shell would.
    if "/" in interpreter:
        interpreter = str(folder / Path(interpreter).expanduser())
    if shutil.which(interpreter) is None:
        raise EngineSettingsError(
            f"{path}: runtime.interpreter: {interpreter} is not there: make the environment as docs/qwen.md shows"
        )
    found: dict[str, Any] = {
        "runtime": settings.runtime.model_copy(update={"interpreter": interpreter}),
        "model": str(folder / Path(settings.model).expanduser()),
    }
    if isinstance(settings, QwenAsrSettings):
        found["aligner"] = str(folder / Path(settings.aligner).expanduser())
    return settings.model_copy(update=found)


def model_revision(folder: str) -> str:
    """Digest of every file in a model folder, by name and content.

    Hashes are remembered for this process by size and time of change, since weights are gigabytes.

    Raises:
        EngineSettingsError: no such folder, or it has no ``config.json``.
    """
    root = Path(folder)
    if not (root / "config.json").is_file():
        raise EngineSettingsError(
            f"{folder}: no model here (no config.json): name the folder of a downloaded checkpoint"
        )
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.name.startswith("."))
    return digest_value("model", [[path.relative_to(root).as_posix(), _file_digest(path)] for path in files])


def _file_digest(path: Path) -> str:
    found = path.stat()
    return _hashed(str(path), found.st_size, found.st_mtime_ns)


@cache
def _hashed(path: str, size: int, changed_ns: int) -> str:
    del size, changed_ns
    return digest_file(Path(path))


def worker_settings(runtime: QwenRuntime) -> dict[str, Any]:
    """What every worker is told."""
    return {"device": runtime.device, "dtype": runtime.dtype, "attention": runtime.attention}
