"""Structured logs: a JSON object a line, with run, track, stage, system and item, and without keys.

``DUPLEX_BENCH_LOG=json`` turns them on in every process, on standard error; ``DUPLEX_BENCH_LOG_FILE`` names a file.
"""

import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from duplex_bench.stages.telemetry.counts import places
from duplex_bench.storage import happenings
from duplex_bench.storage.happenings import Happening
from duplex_bench.storage.secrets import redacted

VARIABLE: Final = "DUPLEX_BENCH_LOG"
FILE_VARIABLE: Final = "DUPLEX_BENCH_LOG_FILE"
LOGGER: Final = logging.getLogger("duplex_bench")
_FIELDS: Final = "duplex_bench_fields"
# What is said of every item of a process, beside what is said of the item: which run it belongs to.
about: dict[str, str] = {}


class JsonLines(logging.Formatter):
    """A record as one line of JSON; values of variables that hold keys are replaced by the variable's name."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            **about,
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return redacted(json.dumps(told, ensure_ascii=False, default=str))


def wanted() -> bool:
    """Whether the environment asks for JSON lines.

    Raises:
        ValueError: it asks for something else.
    """
    asked = os.environ.get(VARIABLE, "")
    if asked not in {"", "text", "json"}:
        raise ValueError(f"{VARIABLE}={asked!r}: set it to json, or to text (the default)")
    return asked == "json"


def install() -> None:
    """Write JSON lines from now on if the environment asks for them; a second call does nothing.

    Raises:
        ValueError: the environment asks for something else than json or text.
        OSError: the file cannot be written.
    """
    if not wanted() or any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger().handlers):
        return
    name = os.environ.get(FILE_VARIABLE)
    handler = logging.FileHandler(Path(name), encoding="utf-8") if name else logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.getLogger().addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    happenings.listen(_log)


def _log(happening: Happening) -> None:
    fields = {name: value for name, value in happening.fields.items() if value is not None}
    scope = fields.pop("scope", None)
    if scope is not None:
        named = zip(("track", "ledger", "system"), places(str(scope)), strict=True)
        fields = {**{name: value for name, value in named if value}, **fields}
    failed = fields.get("state") == "failed" or fields.get("outcome") in {"transport_error", "pacing_violation"}
    LOGGER.log(logging.WARNING if failed else logging.INFO, happening.kind, extra={_FIELDS: fields})
