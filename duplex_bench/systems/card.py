"""A system's card: what it is, how it is run, and under which terms. One TOML file each."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

# What a stimulus asks for, as ``records.items.Protocol``: a card names those that its system can take part in.
CardProtocol = Literal["multiparty", "pause", "turn_end", "recall"]
CardTrack = Literal["multiparty", "conversation"]
Family = Literal["full_duplex", "hosted", "text", "policy"]
_Number = Annotated[float, Field(allow_inf_nan=False)]
Plain = str | int | _Number | bool | list[str] | list[int] | list[_Number]
# The words in braces that stand for something in a command; others would be handed on as they are.
_PLACES = frozenset({"{card_folder}", "{socket_folder}", "{python_path}", "{mounts}"})
_PLACE = re.compile(r"\{[a-z_]+\}")


class Environment(BaseModel):
    """Where the adapter runs: in this process (``none``), or in a worker elsewhere.

    Attributes:
        kind: ``python``: under ``interpreter``, or in the environment that ``systems setup`` makes of ``lock``.
            ``command``: ``command`` ends in a Python that is handed ``-m module ...`` (conda, nix, ssh-like
            wrappers), or is any program that speaks the session contract on the socket it is named
            (``docs/session-contract.md``); in its words ``{card_folder}`` stands for the folder of the card's file.
            ``image``: in a container of ``image``, whose ``python3`` has numpy and the model's packages.
        interpreter: A Python; relative to the card's file, or a bare command of ``PATH``.
        command: As above.
        image: As above; started by ``container_tool``.
        container_tool: ``docker``, or one that takes the same arguments; several words where options are needed.
        python_path: Further folders for the worker's import path, relative to the card's file.
        lock: Requirements with exact versions, relative to the card's file; its text is part of what is executed.
        lock_sha256: Of that text; filled in when the card is read.
        as_written: ``interpreter``, ``python_path`` and ``command`` as the card has them; filled in when the card is
            read, since the paths themselves are then those of this machine.
        memory_limit_gb: The most memory (10^9 bytes of private data) that the worker may ask for.
        start_timeout_s: From its start until it serves, loading of weights included (ours).
        open_timeout_s: The most that opening or closing a session may take (ours).
        step_timeout_s: The most that one unit may take (ours).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["none", "python", "command", "image"] = "none"
    interpreter: str | None = None
    command: tuple[str, ...] = ()
    image: str | None = None
    container_tool: tuple[str, ...] = ("docker",)
    python_path: tuple[str, ...] = ()
    lock: str | None = None
    lock_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    as_written: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    memory_limit_gb: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    start_timeout_s: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    open_timeout_s: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    step_timeout_s: float = Field(default=120.0, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _named_as_its_kind_needs(self) -> Self:
        needs = {"interpreter": "python", "command": "command", "image": "image"}
        for key, kind in needs.items():
            if getattr(self, key) and self.kind != kind:
                raise ValueError(f"environment.{key}: belongs to kind {kind!r}, and kind is {self.kind!r}")
        if self.kind == "python" and self.interpreter is None and self.lock is None:
            raise ValueError("environment: kind 'python' needs an interpreter, or a lock to make one from")
        if self.kind == "command" and not self.command:
            raise ValueError('environment: kind \'command\' needs a command, as ["node", "{card_folder}/mine.mjs"]')
        if self.kind == "image" and not self.image:
            raise ValueError("environment: kind 'image' needs an image")
        if self.kind == "none" and (self.python_path or self.lock or self.memory_limit_gb):
            raise ValueError("environment: python_path, lock and memory_limit_gb belong to a kind other than 'none'")
        if not self.container_tool:
            raise ValueError("environment: container_tool needs at least one word")
        unknown = sorted({place for word in self.command for place in _PLACE.findall(word)} - _PLACES)
        if unknown:
            raise ValueError(
                f"environment.command: {unknown[0]} stands for nothing: write {{card_folder}}, or remove it"
            )
        return self

    @property
    def is_made_here(self) -> bool:
        """Whether ``systems setup`` makes it: a lock, and no interpreter of the user's own."""
        return self.kind == "python" and self.interpreter is None

    def execution_subset(self) -> dict[str, Any]:
        """What of it decides what runs: with a lock its text. Paths are as the card has them, seen from its file: work
        that was paid for is found again wherever card and data lie, on another machine or put back from a backup.
        """
        subset: dict[str, Any] = {
            "kind": self.kind,
            "interpreter": None if self.lock else self.as_written.get("interpreter", self.interpreter),
            "python_path": list(self.as_written.get("python_path", self.python_path)),
            "lock": self.lock_sha256 or self.lock,
        }
        # Named only where they are used, so that keys of runs made before these kinds existed stay.
        if self.command:
            subset["command"] = list(self.as_written.get("command", self.command))
        if self.image:
            subset["image"] = self.image
        return subset


class Sweep(BaseModel):
    """Cards that differ in one setting: ``name`` is theirs together, ``at`` orders them, ``label`` names this one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9_-]+$", max_length=64)
    at: float
    label: str = Field(min_length=1, max_length=24)


class SystemCard(BaseModel):
    """What evaluates, costs and is said about one system. Unknown keys are refused.

    Attributes:
        name: Identity in tables and partitions: lower case letters, digits, ``-`` and ``_``.
        title: How the report names it.
        family: full_duplex, hosted, text or policy.
        adapter: ``module:callable``; the callable takes the settings (a dict) and returns a ``System``.
        adapter_version: Raise it when the adapter's code changes what the system does.
        settings: The callable's argument.
        environment: Where it runs.
        driver: ``frame_stepped`` (a virtual clock), or ``realtime`` for a ``PushSystem``.
        uses_cache: In-process only: the callable also takes the keyword ``store`` (an ``ObjectStore`` or None).
        model_id: The model, as its vendor names the version; empty for a policy.
        provider: Whose limits apply to it, for run tags; empty if nobody's.
        gpu: It needs a GPU of this machine, for run tags.
        max_inflight: Sessions at a time within a run.
        needs_env: Variables that must be set for it to run here; ``A|B`` for either. Without them it is passed over.
        on_request: Run only when it is named.
        word_times: A history that is forced tells it when each word was said. Its adapter declares the same.
        epoch: Raise it to run a drifting hosted model anew on purpose.
        endpointer_dependent: Multiparty scores depend on an endpointer of the harness: a group of its own (design 6).
        tracks: On which tracks it is run.
        protocols: Which stimuli it can take part in; others are ``not_applicable``.
        licence: Terms of the model and of its outputs.
        links: Where it comes from.
        stands_in_for: What an embedded system stands for in the demo, if anything.
        sweep: Which place it has in a sweep of one setting; the report joins those of one sweep to a curve.
        omitted: Capability to reason: what the system cannot take although its relatives can.
        notes: Anything a reader should know.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9_-]+$", max_length=64)
    title: str = Field(min_length=1)
    family: Family
    adapter: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    adapter_version: str = "1"
    settings: dict[str, Plain] = Field(default_factory=dict)
    environment: Environment = Environment()
    driver: Literal["frame_stepped", "realtime"] = "frame_stepped"
    uses_cache: bool = False
    model_id: str = ""
    provider: str = ""
    gpu: bool = False
    max_inflight: int = Field(default=1, ge=1)
    needs_env: tuple[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*(\|[A-Z][A-Z0-9_]*)*$")], ...] = ()
    on_request: bool = False
    word_times: bool = False
    epoch: int = Field(default=0, ge=0)
    endpointer_dependent: bool = False
    tracks: tuple[CardTrack, ...] = Field(default=("multiparty", "conversation"), min_length=1)
    protocols: tuple[CardProtocol, ...] = Field(default=("multiparty", "pause", "turn_end", "recall"), min_length=1)
    licence: str = Field(min_length=1)
    links: tuple[str, ...] = ()
    stands_in_for: str = ""
    sweep: Sweep | None = None
    omitted: dict[str, str] = Field(default_factory=dict)
    notes: str = ""

    @model_validator(mode="after")
    def _can_be_run(self) -> Self:
        if self.uses_cache and self.environment.kind != "none":
            raise ValueError("uses_cache: a store cannot cross into another environment: leave it out")
        if self.driver == "realtime" and self.environment.kind != "none":
            raise ValueError("driver: 'realtime' is driven in this process: leave [environment] out, or the driver")
        if self.adapter.partition(":")[0].endswith(".py"):
            raise ValueError(f"adapter: {self.adapter!r} names a file: write the module, without .py")
        if not any(_track_of(protocol) in self.tracks for protocol in self.protocols):
            raise ValueError("protocols: none of them belongs to a track of tracks: name one, or leave both out")
        return self

    def execution_subset(self) -> dict[str, Any]:
        """The part that decides what a run does; all else may be edited without running anything again."""
        subset: dict[str, Any] = {
            "adapter": self.adapter,
            "adapter_version": self.adapter_version,
            "settings": self.settings,
            "environment": self.environment.execution_subset(),
            "model_id": self.model_id,
            "epoch": self.epoch,
        }
        # Named only where it is used, so that the keys of all other systems stay what they were.
        return {**subset, "word_times": True} if self.word_times else subset

    def execution_digest(self) -> str:
        """SHA-256 of ``execution_subset``: part of every rollout's key."""
        text = json.dumps(self.execution_subset(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


def _track_of(protocol: CardProtocol) -> CardTrack:
    return "multiparty" if protocol == "multiparty" else "conversation"


def missing_env(card: SystemCard, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Which of ``needs_env`` are not set in ``environ``: empty if the system can run here."""
    return tuple(needed for needed in card.needs_env if not any(environ.get(name) for name in needed.split("|")))


def resolved(card: SystemCard, folder: Path) -> SystemCard:
    """``card`` with the paths of its environment made absolute, seen from the folder its file lies in.

    Raises:
        OSError: Its lock cannot be read.
    """
    environment = card.environment
    if environment.kind == "none":
        return card
    written = {"interpreter": environment.interpreter, "python_path": environment.python_path}
    written |= {"command": environment.command}
    update: dict[str, Any] = {
        "as_written": {key: value for key, value in written.items() if value},
        "python_path": tuple(str(folder / Path(entry).expanduser()) for entry in environment.python_path),
    }
    # A bare command is looked up on PATH, as a shell would.
    if environment.interpreter is not None and "/" in environment.interpreter:
        update["interpreter"] = str(folder / Path(environment.interpreter).expanduser())
    if environment.command:
        update["command"] = tuple(word.replace("{card_folder}", str(folder)) for word in environment.command)
    if environment.lock is not None:
        lock = folder / Path(environment.lock).expanduser()
        update |= {"lock": str(lock), "lock_sha256": hashlib.sha256(lock.read_bytes()).hexdigest()}
    return card.model_copy(update={"environment": environment.model_copy(update=update)})
