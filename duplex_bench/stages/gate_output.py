"""What a gate says, as JUnit XML for build servers and as Markdown for a summary page."""

import re
from xml.etree import ElementTree as ET

from duplex_bench.reporting.formats import interval, number
from duplex_bench.stages.gate import Gated, Verdict

# What XML 1.0 cannot hold, however escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = {"passed": "passed", "failed": "**failed**", "reported": "reported"}


def junit(found: Gated) -> bytes:
    """A JUnit document: a suite by track and system, a case by check; what is only reported is skipped."""
    root = ET.Element("testsuites", {"name": "duplex-bench gate", **_counts(found.verdicts)})
    for track, system in dict.fromkeys((verdict.track, verdict.system) for verdict in found.verdicts):
        mine = tuple(verdict for verdict in found.verdicts if (verdict.track, verdict.system) == (track, system))
        suite = ET.SubElement(root, "testsuite", {"name": _clean(f"{track} {system}"), **_counts(mine)})
        for verdict in mine:
            names = {"classname": _clean(f"duplex_bench.{track}.{system}"), "name": _clean(verdict.check), "time": "0"}
            case = ET.SubElement(suite, "testcase", names)
            if verdict.status == "failed":
                failure = ET.SubElement(case, "failure", message=_clean(verdict.reason), type="gate")
                failure.text = _clean(f"{track} {system}, {verdict.check}: {verdict.reason}")
            elif verdict.status == "reported":
                ET.SubElement(case, "skipped", message=_clean(verdict.reason))
            else:
                ET.SubElement(case, "system-out").text = _clean(verdict.reason)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _counts(verdicts: tuple[Verdict, ...]) -> dict[str, str]:
    counted = {status: sum(verdict.status == status for verdict in verdicts) for status in _MARKS}
    return {"tests": str(len(verdicts)), "failures": str(counted["failed"]), "skipped": str(counted["reported"]),
            "errors": "0"}  # fmt: skip


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def summary(found: Gated) -> str:
    """The gate as Markdown: the answer, and a table of what was checked."""
    answer = "passed" if found.passed else "failed"
    counts = ", ".join(f"{found.count(status)} {status}" for status in ("failed", "passed", "reported"))
    lines = [
        f"## duplex-bench gate: {answer}",
        "",
        f"{found.run.title} against the baseline {found.baseline.title}: {counts}. Change is run minus baseline.",
        "",
        "| | track | system | check | change | why |",
        "|---|---|---|---|---|---|",
    ]
    order = {"failed": 0, "reported": 1, "passed": 2}
    for one in sorted(found.verdicts, key=lambda verdict: order[verdict.status]):
        change = ""
        if one.difference is not None:
            change = f"{number(one.difference, signed=True)} {interval(one.low, one.high, signed=True)}"
        cells = (_MARKS[one.status], one.track, one.system, one.check, change, one.reason)
        lines.append(f"| {' | '.join(_cell(text) for text in cells)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
