"""Metric cards of the track: one definition for scores, docs and report (house habit 3)."""

from typing import Final, Literal

from duplex_bench.records.metric_card import MetricCard

_RATE: Final = "share (0 to 1)"
_REQUESTS: Final = "T: the 5 s after the end of the request"
_SILENCE: Final = "N1, N2, N3: from the onset of the human turn to the next human onset"
_YIELD: Final = "N4Q to N4R: from the end of the question to the later of N4R + 2 s and the next human onset"
_RUNS: Final = "Rollouts that ended in a transport error, a refusal or a pacing violation, with their count."


def _card(
    metric: str,
    title: str,
    window: str,
    denominator: str,
    edge_cases: str,
    source: str,
    *,
    direction: Literal["higher", "lower", "target", "none"] = "higher",
    excluded: str = "",
    unit: str = _RATE,
    statistic: Literal["rate", "mean", "median"] = "rate",
    headline: bool = False,
    ours: bool = False,
) -> MetricCard:
    return MetricCard(
        metric, "multiparty", title, unit, direction, statistic, window, denominator,
        f"{excluded} {_RUNS}".strip(), edge_cases, source, 1, headline, ours,
    )  # fmt: skip


CARDS: Final = (
    _card(
        "fresh_onset_response", "Fresh-onset response", _REQUESTS, "All requests T",
        "Speech is bridged over gaps up to 0.25 s (ours). Fresh: not speaking at the end of T, and an onset in "
        "(0 s, 5 s] after it. An onset exactly at the end of T is speaking at the end of T: not fresh.",
        "P1 3.5, A3.1; design 15.4", headline=True,
    ),
    _card(
        "answer_accuracy", "Answer accuracy, given a response", _REQUESTS, "Requests with speech in the window",
        "The answer is the transcript from the end of T to the end of the last utterance begun or under way in the "
        "window; a word that straddles the end of T belongs to it. Speech without a transcript is incorrect.",
        "P1 3.5, A3.3; design 15.4", headline=True,
        excluded="Requests without a response; requests whose answer the judge gave no readable verdict on.",
    ),
    _card(
        "silence_preservation", "Silence preservation", _SILENCE, "All silence windows",
        "A window without detected speech passes without a judge. Speech passes only if a judge calls its words a "
        "brief acknowledgement. Speech without a transcript fails. The rest of an answer to T that runs into the "
        "window counts like any speech (see silence_without_carry_over).",
        "P1 3.5, A3.3; design 15.5", headline=True,
        excluded="Windows whose words the judge gave no readable verdict on, with best and worst bounds.",
    ),
    _card(
        "answering_window_yield", "Answering-window yield", _YIELD, "Eligible events: silent at the end of N4Q, first "
        "onset within 3 s of it, speaking at the onset of N4R",
        "Passes: silent at the onset of N4R + 2 s and from there to the later of that and the next human onset. "
        "Speech that stops and comes back before then fails as resumed. Coverage-conditioned: print n eligible, and "
        "no rate at n = 1.",
        "P1 3.5, A4.1; design 15.6", headline=True, excluded="Events that are not eligible, with the reason.",
    ),
    _card(
        "response_presence", "Response presence", _REQUESTS, "All requests T",
        "Any detected speech in [0 s, 5 s) after the end of T; words are not required, and speech that was already "
        "under way counts.",
        "P1 3.5, A5.1; design 15.4",
    ),
    _card(
        "silence_without_carry_over", "Silence preservation without carry-over", _SILENCE,
        "Silence windows that no answer to T runs into, and those with other speech beside it",
        "Carry-over is an utterance under way at the start of the window, begun between the onset of T and 5 s after "
        "its end. Beside other speech in the window the verdict of the whole window stands.",
        "Design 15.5", ours=True, excluded="Windows whose only speech is the rest of an answer to T.",
    ),
    _card(
        "silence_carry_over", "Silence windows with the rest of an answer", _SILENCE, "All silence windows",
        "As defined for silence_without_carry_over.", "Design 15.5", direction="none", ours=True,
    ),
    _card(
        "silence_untranscribed_passes", "Silence preservation if speech without words passed", _SILENCE,
        "All silence windows", "As silence_preservation, but detected speech without a transcript passes: P1 prints "
        "what this would change (171 windows of Voila).", "P1 A3.3", direction="higher",
        excluded="Windows whose words the judge gave no readable verdict on.",
    ),
    _card(
        "silence_without_untranscribed", "Silence preservation without windows of wordless speech", _SILENCE,
        "Silence windows without speech, or with speech and words",
        "As silence_preservation.", "Design 9", ours=True,
        excluded="Windows with speech and no transcript; windows without a readable verdict.",
    ),
    _card(
        "n4q_window_response", "Response to the question that a human resolves", "N4Q: the 3 s after the question",
        "All N4Q", "Any detected speech in [0 s, 3 s) after the end of N4Q.", "P1 3.5, A5.2", direction="none",
    ),
    _card(
        "stop_latency", "Stop latency", _YIELD, "Eligible events in which the speech under way ended",
        "From the onset of N4R to the end of the (bridged) speech under way then. Longer than the deadline where a "
        "system stopped late; speech that outlasts the observation has no latency, so the median is of those seen.",
        "Design 7", direction="lower", unit="s", statistic="median", ours=True,
        excluded="Events that are not eligible; speech still going on when the observation ends.",
    ),
)  # fmt: skip

CARD_BY_ID: Final = {card.id: card for card in CARDS}


def as_markdown() -> str:
    """The page ``docs/metrics-multiparty.md``, generated: headline metrics first."""
    lines = [
        "# Metrics of the multiparty track",
        "",
        "Generated from `duplex_bench/multiparty/cards.py` by `python -m duplex_bench.multiparty.docs`; do not edit.",
        "The four headline metrics have denominators of their own and are never added up. P1 is Duplex-MPE; what the",
        "papers leave open and we chose is marked *ours*.",
        "",
    ]
    for card in CARDS:
        marks = ", ".join(name for name, on in (("headline", card.headline), ("*ours*", card.ours)) if on)
        lines += [
            f"## {card.title}",
            "",
            f"`{card.id}`, version {card.version}{f', {marks}' if marks else ''}",
            "",
            f"- **Unit and direction**: {card.unit}; {_DIRECTIONS[card.direction]}; aggregated as {card.statistic}.",
            f"- **Window**: {card.window}.",
            f"- **Denominator**: {card.denominator}.",
            f"- **Left out**: {card.excluded}",
            f"- **Edge cases**: {card.edge_cases}",
            f"- **Source**: {card.source}.",
            "",
        ]
    return "\n".join(lines)


_DIRECTIONS: Final = {
    "higher": "higher is better",
    "lower": "lower is better",
    "target": "a target is best",
    "none": "neither high nor low is better by itself",
}
