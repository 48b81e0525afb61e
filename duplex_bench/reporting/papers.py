"""Every table and figure of both papers: where this report shows it, or what data it needs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from duplex_bench.reporting.inputs import Table

PAPERS: Final[Mapping[str, str]] = {
    "P1": "Duplex-MPE: multi-party interaction in full-duplex dialogue",
    "P2": "People Making Conversation: how naturally speech models converse",
}
_RUN: Final = "a run of this track in which windows of this kind were scored"
_RECALL: Final = (
    "recall points: a profile with conversation.recall.enabled = true (paper.toml has it), whose facts are planted or "
    "extracted by a text model (conversation.recall.model), then duplex-bench run"
)
_REVIEWED: Final = (
    "labels that people corrected: review conversations in duplex-bench review, have an administrator approve them, "
    "then duplex-bench regenerate and duplex-bench report"
)


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A table or figure of a paper. ``shown`` are ids of tables and figures here; ``needs`` says what fills it.

    An exhibit that rests on no data of a run has nothing to show: ``needs`` then says what it is.
    """

    paper: str
    number: str
    title: str
    shown: tuple[str, ...]
    needs: str = _RUN


# Our copy of P1 names Tables 1, 14, 15, 16 and 21 by number; others stand here by the section that tells of them.
EXHIBITS: Final = (
    Exhibit("P1", "Table 1", "Task interfaces of other benchmarks", (), "related work, not data of a run"),
    Exhibit(
        "P1",
        "4.1 to 4.4",
        "Metrics by condition",
        ("multiparty-leaderboard", "multiparty-conditions", "multiparty-rates"),
    ),
    Exhibit("P1", "4.1", "Answers, given a response", ("multiparty-accuracy",)),
    Exhibit(
        "P1",
        "4.5",
        "Do metrics rank systems alike",
        ("multiparty-rank-correlations",),
        "three entries of system and condition or more, reference policies not counted, with the metrics measured",
    ),
    Exhibit(
        "P1",
        "A2.2, A2.4",
        "Composition and placement of requests",
        ("multiparty-composition", "multiparty-request-placement", "multiparty-accounting"),
    ),
    Exhibit(
        "P1", "A2.3", "Construction of the speech", ("multiparty-construction", "multiparty-construction-boundaries")
    ),
    Exhibit(
        "P1", "A2.5", "Durations of turns and conversations", ("multiparty-duration-statistics", "multiparty-durations")
    ),
    Exhibit("P1", "A3.3", "What was heard where silence was due", ("multiparty-speech-in-silence",)),
    Exhibit(
        "P1",
        "A3.4",
        "Human validation of the judge",
        ("multiparty-human-validation",),
        "filled sheets of people: duplex-bench validate draws a blind sample and takes the sheets back, then "
        "duplex-bench report",
    ),
    Exhibit("P1", "A3.5", "Sensitivity to the minimum duration of speech", ("multiparty-minimum-speech",)),
    Exhibit("P1", "A3.6", "Responses and answers by request time", ("multiparty-request-thirds",)),
    Exhibit("P1", "Table 14", "Stopping: who is eligible", ("multiparty-stopping",)),
    Exhibit("P1", "Table 15", "Stopping: outcomes", ("multiparty-stopping",)),
    Exhibit("P1", "Table 16", "Explicit against implicit addressing, paired", ("multiparty-addressing",)),
    Exhibit(
        "P1",
        "A5.2",
        "Transcript reference, and agreement of two runs",
        ("transcript_reference", "transcript_reference_decisions"),
        "a reader of the transcript: multiparty.reference in the profile, a rule in the demo, a text model with a key",
    ),
    Exhibit("P1", "A5.3", "Silence by type of turn", ("multiparty-turn-types", "multiparty-addressees")),
    Exhibit("P1", "A6", "Examples", ("multiparty-examples",)),
    Exhibit(
        "P1",
        "Table 21",
        "Intervals and pairwise tests",
        ("multiparty-paper-comparable", "multiparty-pairwise", "multiparty-orderings"),
    ),
    Exhibit("P2", "Table 1", "Corpora of two-party conversation", (), "related work, not data of a run"),
    Exhibit("P2", "Table 2", "Benchmarks for turn-taking", (), "related work, not data of a run"),
    Exhibit("P2", "Table 3", "Main results", ("conversation-main-results", "conversation-protocol-waits")),
    Exhibit("P2", "Table 4", "Curation funnel", ("conversation-curation", "funnel")),
    Exhibit("P2", "Table 5", "Label inventory", ("conversation-label-inventory", "conversation-label-lengths")),
    Exhibit(
        "P2",
        "Table 6",
        "Human review against the engine's labels",
        ("conversation-label-review",),
        _REVIEWED,
    ),
    Exhibit(
        "P2",
        "App. E",
        "Boundaries at the points against reviewed labels",
        ("conversation-boundary-agreement",),
        _REVIEWED,
    ),
    Exhibit("P2", "Table 7", "System cards", ("conversation-system-cards",)),
    Exhibit(
        "P2",
        "Table 8",
        "Gate sensitivity",
        ("conversation-gate-sweep", "conversation-gate-levels"),
        "a profile with conversation.calibration.rollouts above 0 (paper.toml has 57): so many pause rollouts of each "
        "system are heard again in two-second windows, then duplex-bench report",
    ),
    Exhibit(
        "P2",
        "App. D",
        "What wordless audio is",
        ("conversation-wordless-audio",),
        "a system that makes sound without words at a pause",
    ),
    Exhibit("P2", "Table 9", "Recall by history length", ("conversation-recall-by-history",), _RECALL),
    Exhibit("P2", "Table 10", "One recall point, every reply", ("conversation-recall-example",), _RECALL),
    Exhibit("P2", "Table 11", "Takeover under boundary perturbation", ("conversation-boundary-shifts",)),
    Exhibit(
        "P2",
        "Table 12",
        "Recall under three scorers",
        ("conversation-recall-by-scorer", "conversation-recall-second-judge"),
        f"{_RECALL}; for the second judge also judge.second and its key",
    ),
    Exhibit("P2", "Table 13", "Takeover by tercile of the ranking", ("conversation-takeover-by-ranking",)),
    Exhibit("P2", "Table 14", "Intervals of the main results", ("conversation-intervals",)),
    Exhibit("P2", "Table 15", "Exceptional outcomes", ("conversation-exceptional",)),
    Exhibit(
        "P2",
        "App. E",
        "Endpointer settings, paired",
        ("conversation-takeover-pairs",),
        "two systems on the same pauses",
    ),
    Exhibit("P2", "Figure 1", "A pause point", ("conversation-pause-point",)),
    Exhibit("P2", "Figure 2 a", "What systems do at pauses", ("conversation-pause-outcomes",)),
    Exhibit("P2", "Figure 2 b", "When first words land", ("conversation-first-words",)),
    Exhibit("P2", "Figure 2 c", "Takeover against response", ("conversation-takeover-and-response",)),
    Exhibit("P2", "Figure 3", "Turn ends: latency, duration, words", ("conversation-turn-end-quartiles",)),
    Exhibit("P2", "Figure 4", "Recall against history length", ("conversation-recall",), _RECALL),
    Exhibit("P2", "Figure 5", "Corpus selection", ("conversation-liveliness", "conversation-selection")),
    Exhibit("P2", "Figure 6", "Label distributions", ("conversation-label-distributions",)),
    Exhibit(
        "P2",
        "Figure 7",
        "Takeover against pause length",
        ("conversation-takeover-by-length",),
        "eight scored pauses or more",
    ),
    Exhibit(
        "P2",
        "Figure 8",
        "Distributions at turn ends",
        ("conversation-turn-end-distributions", "conversation-distributions"),
    ),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """An exhibit with what of it this report holds: (id, title) of each, in the order of the exhibit."""

    exhibit: Exhibit
    found: tuple[tuple[str, str], ...]


def exhibits(titles: Mapping[str, str], filled: Collection[str]) -> list[Shown]:
    """Every exhibit of both papers with its places in this report.

    Args:
        titles: by id, of every table and figure of the report.
        filled: ids of figures, and of tables that have rows.
    """
    return [Shown(one, tuple((name, titles[name]) for name in one.shown if name in filled)) for one in EXHIBITS]


def exhibits_table(shown: Collection[Shown]) -> Table:
    """The same as a table: one row an exhibit, with the ids that show it or what it needs."""
    rows = [
        {
            "paper": one.exhibit.paper,
            "number": one.exhibit.number,
            "title": one.exhibit.title,
            "shown_as": ", ".join(name for name, _ in one.found) or None,
            "needs": None if one.found else one.exhibit.needs,
        }
        for one in shown
    ]
    schema = dict.fromkeys(("paper", "number", "title", "shown_as", "needs"), pl.String)
    filled = sum(bool(one.found) for one in shown)
    return Table(
        "papers",
        "Tables and figures of the papers",
        f"{filled} of {len(rows)} are filled from this run's data; the others say what they need.",
        pl.DataFrame(rows, schema=schema),
    )
