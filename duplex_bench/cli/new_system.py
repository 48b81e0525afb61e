"""``duplex-bench systems new`` and ``sweep``: cards written into the user's folder."""

import json
import re
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from duplex_bench.stages.cards import card_named
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.interpreters import fault_of
from duplex_bench.systems.sweeps import card_toml, sweep_cards

_NAME = re.compile(r"[a-z0-9_-]{1,64}")


def write_new_system(folder: Path, name: str, taken: set[str], python: str | None = None) -> tuple[Path, Path]:
    """Write ``<name>.toml`` and its module into ``folder``; never over what is there.

    Args:
        folder: The user's folder of cards; made if missing.
        name: Of the system.
        taken: Names that other cards have.
        python: Interpreter that has the model's packages; this one by default.

    Returns:
        The card and the module.

    Raises:
        ValueError: A name that no card may have, or that is taken; an interpreter under which nothing can be served.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a system: use a-z, 0-9, - and _, at most 64 characters")
    if name in taken:
        raise ValueError(f"a system {name} exists: choose another name, or edit its card")
    module = re.sub(r"^(?=\d)", "system_", name.replace("-", "_"))
    # A module of that name that can be imported already would be found instead of ours.
    if "." not in module and (module in sys.stdlib_module_names or find_spec(module) is not None):
        module += "_system"
    card, code = folder / f"{name}.toml", folder / f"{module}.py"
    for path in (card, code):
        if path.exists():
            raise ValueError(f"{path} exists: choose another name, or move it away")
    interpreter = sys.executable if python is None else _interpreter(python)
    templates = files("duplex_bench.cli.templates")
    text = (templates / "system.toml.txt").read_text("utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    code.write_text((templates / "system.py.txt").read_text("utf-8"), "utf-8")
    filled = text.format(name=name, module=module, interpreter=json.dumps(interpreter, ensure_ascii=False))
    card.write_text(filled, "utf-8")
    return card, code


def _interpreter(python: str) -> str:
    fault = fault_of(python)
    if fault is not None:
        raise ValueError(f"--python: {fault}")
    # Not resolved: the python of a virtual environment is a link to one outside of it.
    return str(Path(python).absolute()) if "/" in python else python


def write_sweep(folder: Path, name: str, silences: str) -> list[SystemCard]:
    """Write the cards of an endpointer sweep of card ``name`` into ``folder``, over those of an earlier one.

    Raises:
        ValueError: No such card, nothing to sweep in it, or ``silences`` are no numbers with commas between.
    """
    try:
        wanted = [int(part) for part in silences.split(",")]
    except ValueError:
        raise ValueError(f"--silences {silences!r}: give whole milliseconds with commas between, as 100,300") from None
    cards = sweep_cards(card_named(folder, name), wanted)
    folder.mkdir(parents=True, exist_ok=True)
    for card in cards:
        (folder / f"{card.name}.toml").write_text(card_toml(card), "utf-8")
    return cards
