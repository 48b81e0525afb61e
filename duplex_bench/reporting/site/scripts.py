"""Values and names that are safe inside a page: JSON for script files, file names for pages."""

import json
import re
from typing import Any

from duplex_bench.storage.digests import digest_value

_UNSAFE = re.compile("[<>&\u2028\u2029]")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}")


def script_json(value: Any) -> str:
    """JSON that may stand inside a ``<script>`` element or a script file, whatever text it holds.

    Raises:
        ValueError: NaN or infinity, which JSON cannot say.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def script_call(name: str, value: Any) -> str:
    """A script that hands ``value`` to ``duplexReport.receive``: a page on disk may not fetch, but may load this."""
    return f"duplexReport.receive({script_json(name)},{script_json(value)});\n"


def slug(name: str) -> str:
    """``name`` as a file name: itself where it is plain, else a readable part and a digest that keeps it apart."""
    if _NAME.fullmatch(name):
        return name
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    return f"{readable or 'x'}-{digest_value('slug/1', name)[:10]}"
