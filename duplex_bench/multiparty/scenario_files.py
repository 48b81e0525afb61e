"""A user's own scenarios from TOML, YAML or CSV, through the validators of every other script."""

import csv
import io
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from duplex_bench.multiparty.scripts import DEFAULT_ASSISTANT_NAME, SPEAKERS, Condition, Pair, Script, Utterance
from duplex_bench.multiparty.validate import Fault, pair_faults


class ScenarioFileError(ValueError):
    """A scenario file cannot be used; the message names file, row and remedy."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Turn(_Strict):
    speaker: Literal["A", "B", "C", "D"]
    type: Literal["T", "N1", "N2", "N3", "N4Q", "N4R"]
    text: str
    to: str = ""
    implicit_text: str = ""
    answer: str = ""


class _Scenario(_Strict):
    id: str
    names: dict[Literal["A", "B", "C", "D"], str]
    gold_answer: str
    turns: tuple[_Turn, ...]
    domain: str = "own"
    family: str = "own"
    common_knowledge: str = ""
    assistant_name: str = DEFAULT_ASSISTANT_NAME


def read_scenarios(path: Path) -> tuple[list[Pair], list[str]]:
    """Pairs of the scenarios in ``path``, and one message for each scenario that breaks a rule and is left out.

    TOML and YAML hold a list ``scenario`` with ``id``, ``names`` (A = "Maya", ...), ``gold_answer``, optional
    ``common_knowledge``, ``domain``, ``family``, ``assistant_name``, and ``turns``: ``speaker``, ``type`` (T, N1, N2,
    N3, N4Q, N4R), ``text``, ``to`` (a speaker, group or assistant), ``implicit_text`` (required for T, allowed for the
    turn before it), ``answer`` (for N4Q). CSV has one turn a row with the same columns beside ``scenario``, ``name``
    (of the speaker), ``gold_answer`` and ``common_knowledge``.

    Raises:
        ScenarioFileError: the file is missing, not of a known kind, or not readable as one.
    """
    readers = {".toml": _from_toml, ".yaml": _from_yaml, ".yml": _from_yaml, ".csv": _from_csv}
    if path.suffix.lower() not in readers:
        raise ScenarioFileError(f"{path}: scenarios come from {', '.join(readers)} files: rename or convert it")
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise ScenarioFileError(f"{path}: there is no such file: check the path") from error
    except UnicodeDecodeError as error:
        raise ScenarioFileError(f"{path}: byte {error.start} is not UTF-8: save the file as UTF-8") from error
    raw, rows = readers[path.suffix.lower()](path, text)
    pairs: list[Pair] = []
    problems: list[str] = []
    seen: set[str] = set()
    for number, entry in enumerate(raw):
        where = f"{path}, scenario {number + 1}"
        try:
            scenario = _Scenario.model_validate(entry)
        except ValidationError as error:
            problems += [
                f"{_at(where, rows[number], item['loc'])}: {item['msg']}. Mend or remove it" for item in error.errors()
            ]
            continue
        if scenario.id in seen:
            problems.append(f"{where}: id {scenario.id!r} is used twice. Give each scenario its own id")
            continue
        seen.add(scenario.id)
        if sorted(scenario.names) != list(SPEAKERS[: len(scenario.names)]):
            problems.append(
                f"{where}: names are given for {', '.join(sorted(scenario.names))}. Name speakers from A on"
            )
            continue
        pair = _pair(scenario)
        faults = pair_faults(pair)
        if faults:
            problems += _messages(where, rows[number], faults)
        else:
            pairs.append(pair)
    if not raw:
        raise ScenarioFileError(f"{path}: it holds no scenario: add at least one")
    return pairs, problems


def _at(where: str, rows: list[int], location: tuple[int | str, ...]) -> str:
    if len(location) > 1 and location[0] == "turns" and isinstance(location[1], int):
        line = f", row {rows[location[1]]}" if rows else ""
        return f"{where}{line}, turn {location[1] + 1}, {'.'.join(map(str, location[2:]))}"
    line = f", row {rows[0]}" if rows else ""
    return f"{where}{line}, {'.'.join(map(str, location))}"


def _messages(where: str, rows: list[int], faults: list[Fault]) -> list[str]:
    messages: dict[str, None] = {}
    for fault in faults:
        turn = int(fault.utterance_id[1:]) if fault.utterance_id else None
        line = f", row {rows[turn - 1 if turn else 0]}" if rows else ""
        place = f"{where} ({fault.scenario_id}){line}{f', turn {turn}' if turn else ''}"
        messages.setdefault(f"{place}: {fault.message} [{fault.rule}]. {fault.remedy}")
    return list(messages)


def _pair(scenario: _Scenario) -> Pair:
    scripts: dict[Condition, Script] = {}
    names = tuple(scenario.names[speaker] for speaker in SPEAKERS if speaker in scenario.names)
    for condition in ("explicit", "implicit"):
        turns = []
        for number, turn in enumerate(scenario.turns):
            text = turn.implicit_text if condition == "implicit" and turn.implicit_text else turn.text
            to = turn.to or {"T": "assistant", "N4Q": "assistant"}.get(turn.type, "group")
            resolves = f"u{number:02d}" if turn.type == "N4R" else None
            turns.append(
                Utterance(f"u{number + 1:02d}", turn.speaker, text, turn.type, to, turn.answer or None, resolves)
            )
        kept: Condition = "explicit" if condition == "explicit" else "implicit"
        scripts[kept] = Script(
            f"{scenario.id}-{condition}", scenario.id, kept, scenario.domain, scenario.family, tuple(turns),
            scenario.gold_answer, names, None, scenario.common_knowledge or None, scenario.assistant_name,
        )  # fmt: skip
    pair = Pair(scenario.id, scripts["explicit"], scripts["implicit"])
    return Pair(pair.scenario_id, pair.explicit, pair.implicit, pair.differing)


Raw = tuple[list[Any], list[list[int]]]


def _listed(path: Path, loaded: Any) -> Raw:
    entries = loaded.get("scenario") if isinstance(loaded, dict) else None
    if not isinstance(entries, list):
        raise ScenarioFileError(f"{path}: it has no list named scenario: put scenarios under that name")
    unknown = sorted(set(loaded) - {"scenario"})
    if unknown:
        raise ScenarioFileError(f"{path}: unknown key {unknown[0]!r}: only scenario stands at the top")
    return entries, [[] for _ in entries]


def _from_toml(path: Path, text: str) -> Raw:
    try:
        return _listed(path, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ScenarioFileError(f"{path}: not TOML: {error}") from error


def _from_yaml(path: Path, text: str) -> Raw:
    import yaml

    try:
        return _listed(path, yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise ScenarioFileError(f"{path}: not YAML: {error}") from error


_COLUMNS = (
    "scenario",
    "speaker",
    "name",
    "type",
    "text",
    "to",
    "implicit_text",
    "answer",
    "gold_answer",
    "common_knowledge",
)


def _from_csv(path: Path, text: str) -> Raw:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = reader.fieldnames or []
    for problem, found in (
        ("column is missing", [name for name in _COLUMNS[:5] if name not in columns]),
        ("column is unknown", [name for name in columns if name not in _COLUMNS]),
    ):
        if found:
            raise ScenarioFileError(f"{path}, row 1: {problem}: {found[0]!r}. The columns are {', '.join(_COLUMNS)}")
    scenarios: dict[str, dict[str, Any]] = {}
    rows: dict[str, list[int]] = {}
    for row in reader:
        number = reader.line_num
        cells = {name: (value or "").strip() for name, value in row.items() if name is not None}
        if None in row:
            raise ScenarioFileError(f"{path}, row {number}: it has more cells than columns: quote texts with commas")
        entry = scenarios.setdefault(cells["scenario"], {"id": cells["scenario"], "names": {}, "turns": []})
        rows.setdefault(cells["scenario"], []).append(number)
        for name in ("gold_answer", "common_knowledge"):
            if cells.get(name):
                entry[name] = cells[name]
        if cells["name"]:
            entry["names"][cells["speaker"]] = cells["name"]
        kept = ("speaker", "type", "text", "to", "implicit_text", "answer")
        entry["turns"].append({name: cells[name] for name in kept if cells.get(name)})
    return list(scenarios.values()), list(rows.values())
