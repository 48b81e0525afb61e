"""Each finding of the papers put to a run: agrees, disagrees or cannot tell, in a sentence made from the numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.formats import MINUS, interval, number, p_value, unit_suffix
from duplex_bench.reporting.inputs import TrackTables
from duplex_bench.reporting.system_types.claims import CLAIMS, TYPE_TITLES, TYPES, Alike, Between, Claim, Ranked, Within
from duplex_bench.reporting.system_types.estimates import Estimate, TypeStatistics
from duplex_bench.statistics import holm

Agreement = Literal["agrees", "disagrees", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A finding of a paper and what this run says to it. ``p_corrected`` is Holm's over the findings of the track."""

    claim: Claim
    estimate: Estimate
    p_corrected: float | None
    agreement: Agreement
    sentence: str


def answers(tables: TrackTables, statistics: TypeStatistics) -> tuple[Answer, ...]:
    """What this run says to every finding of its track."""
    claims = [claim for claim in CLAIMS if claim.track == tables.track]
    estimates = [statistics.contrast(claim.contrast) for claim in claims]
    return tuple(
        _answer(claim, estimate, corrected, statistics, tables)
        for claim, estimate, corrected in zip(claims, estimates, _corrected(estimates), strict=True)
    )


def _corrected(estimates: Sequence[Estimate]) -> list[float | None]:
    tested = [place for place, one in enumerate(estimates) if one.p is not None]
    found: list[float | None] = [None] * len(estimates)
    raw = [p for one in estimates if (p := one.p) is not None]
    for place, p in zip(tested, holm(raw) if raw else [], strict=True):
        found[place] = float(p)
    return found


def _answer(
    claim: Claim,
    estimate: Estimate,
    corrected: float | None,
    statistics: TypeStatistics,
    tables: TrackTables,
) -> Answer:
    if isinstance(claim.contrast, Alike):
        agreement = _alike(estimate, tables)
    else:
        agreement = _agreement(estimate, claim.expected, tables.alpha)
    seen = _seen(claim, estimate, statistics, tables)
    if estimate.value is None:
        said = f"Cannot be told: {estimate.why}."
    elif agreement == "cannot tell":
        said = f"{seen} Whether {claim.so} cannot be told: {_why_not(claim, estimate, tables)}."
    else:
        holds = claim.so if agreement == "agrees" else claim.otherwise
        said = f"{seen} Here {holds}."
        if corrected is not None and corrected >= tables.alpha and not isinstance(claim.contrast, Alike):
            said += f" By itself this is significant, beside the other findings not (corrected p {p_value(corrected)})."
    return Answer(claim, estimate, corrected, agreement, said)


def _agreement(estimate: Estimate, expected: int, alpha: float) -> Agreement:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return "cannot tell"
    apart = estimate.low > 0 or estimate.high < 0
    if not apart or (estimate.p is not None and estimate.p >= alpha):
        return "cannot tell"
    return "agrees" if (estimate.value > 0) == (expected > 0) else "disagrees"


def _alike(estimate: Estimate, tables: TrackTables) -> Agreement:
    """No difference that would matter: two one-sided tests; a difference: by interval and sign flips."""
    if estimate.value is None or estimate.inner is None:
        return "cannot tell"
    margin, (low, high) = tables.analysis.equivalence_margin, estimate.inner
    if -margin < low and high < margin:
        return "agrees"
    return "disagrees" if _agreement(estimate, 1, tables.alpha) != "cannot tell" else "cannot tell"


def _why_not(claim: Claim, estimate: Estimate, tables: TrackTables) -> str:
    if estimate.low is None or estimate.high is None:
        return estimate.why or "it has no interval"
    few = f"{estimate.n_clusters} {'scenarios' if claim.track == 'multiparty' else 'conversations'}"
    if isinstance(claim.contrast, Alike):
        margin = number(tables.analysis.equivalence_margin)
        return f"with {few} a difference as large as the margin of {margin} is not ruled out"
    if estimate.p is not None and 2.0 ** (1 - estimate.n_clusters) >= tables.alpha:
        return f"with {few} no test can tell"
    if estimate.value == 0:
        return "the two are alike"
    way = "the papers' way" if ((estimate.value or 0) > 0) == (claim.expected > 0) else "the other way"
    return f"it points {way}, but with {few} it may be chance"


def _seen(claim: Claim, estimate: Estimate, statistics: TypeStatistics, tables: TrackTables) -> str:
    """The numbers that a claim rests on, as a sentence."""
    if estimate.value is None:
        return ""
    contrast = claim.contrast
    cards = {card.id: card for card in tables.cards}
    test = "" if estimate.p is None else f", p {p_value(estimate.p)}"
    if isinstance(contrast, Ranked):
        rho = f"{estimate.value:+.2f}".replace("-", MINUS)
        first, second = cards[contrast.first].title, cards[contrast.second].title
        span = interval(estimate.low, estimate.high, signed=True)
        return f"{first} against {second}: rank correlation {rho} {span} over {estimate.n_systems} systems."
    card = cards[claim.metrics[0]]
    unit = unit_suffix(card.unit)
    apart = (
        f"{number(estimate.value, card.unit, signed=True)}{unit} "
        f"{interval(estimate.low, estimate.high, card.unit, signed=True)}{test}"
    )
    if isinstance(contrast, Between):
        parts = [f"{TYPE_TITLES[kind]} {_short(statistics.of_type(card.id, kind), card)}" for kind in TYPES]
        return f"{card.title}: {', '.join(parts)}; difference {apart}."
    if isinstance(contrast, Within):
        both = [f"{cards[name].title} {_short(statistics.of_type(name, contrast.of), cards[name])}"
                for name in claim.metrics]  # fmt: skip
        return f"{', '.join(both)}; difference {apart}."
    if isinstance(contrast, Alike):
        return f"{card.title}, explicit minus implicit, over {estimate.n_systems} systems: {apart}."
    whole = _short(statistics.of_type(card.id, contrast.of), card)
    return f"{card.title}: {whole}; difference from {number(contrast.value)}: {apart}."


def _short(estimate: Estimate, card: MetricCard) -> str:
    if estimate.value is None:
        return f"no value ({estimate.why})"
    told = f"{number(estimate.value, card.unit)}{unit_suffix(card.unit)}"
    return f"{told} {interval(estimate.low, estimate.high, card.unit)}"
