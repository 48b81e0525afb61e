"""What every conversation metric means: the one source for scores, docs and report."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from duplex_bench.records.metric_card import MetricCard

_PAUSE: Final = "the labelled pause of a pause point, from its start on"
_TURN_END: Final = "from the turn end of a turn-end point to the end of the rollout, at most 30 s"
_ROLLOUTS: Final = "rollouts that ended as completed or no_audio"
_SPOKEN: Final = "rollouts with at least one word of response"
_FAILED: Final = "rollouts that failed in transport, were refused or broke pacing"


def _share(name: str, title: str, direction: str, edge_cases: str, *, headline: bool = False) -> MetricCard:
    return MetricCard(
        id=name, track="conversation", title=title, unit="share of rollouts",
        direction="higher" if direction == "higher" else "lower" if direction == "lower" else "none",
        statistic="rate", window=_PAUSE, denominator=_ROLLOUTS,
        excluded=f"{_FAILED}; rollouts whose words cannot be placed in time where it would decide",
        edge_cases=edge_cases, source="P2 3.5 item 1, design 15.2", version=1, headline=headline,
    )  # fmt: skip


POINT_CARDS: Final[tuple[MetricCard, ...]] = (
    _share(
        "pause_silent", "Silent at the pause", "higher",
        "No above-gate audio from the pause start on. Speech that was over by the pause start is not counted and "
        "flagged. The five shares add up to 1.", headline=True,
    ),
    _share(
        "pause_wordless", "Wordless audio at the pause", "none",
        "Above-gate audio from the pause start on, but no interval that a word overlaps.",
    ),
    _share(
        "pause_takeover", "Took the floor in the pause", "lower",
        "A gate interval that a word overlaps also overlaps the pause, even if it began before the pause or its first "
        "word falls after it. The gate opens up to 20 ms before an onset: onsets that close after the pause end count "
        "as inside.", headline=True,
    ),
    _share(
        "pause_after", "Spoke after the pause", "none",
        "No takeover, and a word-bearing interval begins at the pause end or later.",
    ),
    _share(
        "pause_no_audio", "Response without audio", "lower",
        "A response was begun or due and no audio came; silence without a response counts as silent.",
    ),
    MetricCard(
        id="takeover_latency", track="conversation", title="Takeover latency", unit="s", direction="none",
        statistic="median", window=_PAUSE, denominator="takeovers", excluded="rollouts without a takeover",
        edge_cases="First word of the interval that took the floor minus the pause start. 0 if the system was already "
        "speaking (gaps up to 0.25 s joined). May exceed the pause if the first word falls after its end.",
        source="P2 3.5 item 1, design 15.2", version=1, headline=True,
    ),
    MetricCard(
        id="takeover_already_under_way", track="conversation", title="Takeovers already under way",
        unit="share of takeovers", direction="none", statistic="rate", window=_PAUSE, denominator="takeovers",
        excluded="rollouts without a takeover",
        edge_cases="Speech that began before the pause start and was still going at it, gaps up to 0.25 s joined.",
        source="P2 5", version=1,
    ),
    MetricCard(
        id="first_word_from_pause_start", track="conversation", title="First word from the pause start", unit="s",
        direction="none", statistic="median", window=_PAUSE, denominator="rollouts with a word at or after the pause",
        excluded="silent, wordless and no-audio rollouts",
        edge_cases="Takeovers and later speech alike; 0 if already speaking.", source="P2 5, figure 2b", version=1,
    ),
    MetricCard(
        id="first_word_from_pause_end", track="conversation", title="First word from the pause end", unit="s",
        direction="none", statistic="median", window=_PAUSE, denominator="rollouts with a word at or after the pause",
        excluded="silent, wordless and no-audio rollouts",
        edge_cases="Negative inside the pause, at the least minus its length.", source="P2 5, figure 2b", version=1,
    ),
    MetricCard(
        id="response_rate", track="conversation", title="Responded at the turn end", unit="share of rollouts",
        direction="higher", statistic="rate", window=_TURN_END, denominator=_ROLLOUTS, excluded=_FAILED,
        edge_cases="At least one transcribed word in speech that ends after the turn end. No audio is no response.",
        source="P2 3.5, figure 2c", version=1, headline=True,
    ),
    MetricCard(
        id="no_words", track="conversation", title="No words at the turn end", unit="share of rollouts",
        direction="lower", statistic="rate", window=_TURN_END, denominator=_ROLLOUTS, excluded=_FAILED,
        edge_cases="One minus the response rate: no audio, or audio without a transcribed word.",
        source="P2 appendix E, table 15", version=1,
    ),
    MetricCard(
        id="turn_end_latency", track="conversation", title="Turn-end latency", unit="s", direction="none",
        statistic="median", window=_TURN_END, denominator=_SPOKEN, excluded="rollouts without words",
        edge_cases="Onset of the response's first word minus the turn end; 0 or less if it began before the turn end "
        "and was still going. Speech that was over by the turn end is no response.",
        source="P2 3.5 item 2, design 15.3", version=1, headline=True,
    ),
    MetricCard(
        id="at_cap", track="conversation", title="Still speaking at the cap", unit="share of rollouts",
        direction="lower", statistic="rate", window=_TURN_END, denominator=_ROLLOUTS, excluded=_FAILED,
        edge_cases="Speech within 0.25 s of the cap, 30 s after the turn end on the listener timeline. A rollout that "
        "ended sooner is not at the cap.", source="P2 3.5, appendix C, design 15.3", version=1,
    ),
    MetricCard(
        id="duration_ratio", track="conversation", title="Duration to the person's", unit="ratio", direction="target",
        statistic="median", window=_TURN_END, denominator=_SPOKEN,
        excluded="rollouts without words or without above-gate audio; a reply of the person that does not gate as "
        "speech",
        edge_cases="First to last speech interval of the response, later resumptions and the part before the turn end "
        "included, over the same of the person's reply under the same gate.",
        source="P2 3.5 item 3, design 15.3", version=1, headline=True, target=1.0,
    ),
    MetricCard(
        id="word_ratio", track="conversation", title="Words to the person's", unit="ratio", direction="target",
        statistic="median", window=_TURN_END, denominator=_SPOKEN, excluded="rollouts without words",
        edge_cases="Transcribed words of the response over the words of the person's reply in its label.",
        source="P2 3.5 item 3, design 15.3", version=1, headline=True, target=1.0,
    ),
    MetricCard(
        id="first_reply_duration", track="conversation", title="First reply", unit="s", direction="none",
        statistic="median", window=_TURN_END, denominator=_SPOKEN,
        excluded="rollouts without words or above-gate audio",
        edge_cases="The response up to its first gap of more than 1 s.", source="ours, design 8", version=1, ours=True,
    ),
    MetricCard(
        id="resumptions", track="conversation", title="Resumptions", unit="count", direction="lower",
        statistic="mean", window=_TURN_END, denominator=_SPOKEN, excluded="rollouts without words or above-gate audio",
        edge_cases="Stretches after the first that follow a gap of more than 1 s.", source="ours, design 8", version=1,
        ours=True,
    ),
    MetricCard(
        id="token_f1", track="conversation", title="Token F1 to the person's reply", unit="F1", direction="higher",
        statistic="median", window=_TURN_END, denominator=_SPOKEN, excluded="rollouts without words",
        edge_cases="Lower case, no punctuation, multiset, articles kept. Read it between the floor (another reply of "
        "the same conversation) and the ceiling (the reply through the recogniser).",
        source="P2 3.5 item 4", version=1, headline=True,
    ),
    MetricCard(
        id="cosine", track="conversation", title="Cosine to the person's reply", unit="cosine", direction="higher",
        statistic="median", window=_TURN_END, denominator=_SPOKEN,
        excluded="rollouts without words; runs without a text-vector engine",
        edge_cases="all-MiniLM-L6-v2 sentence vectors; floor and ceiling as for token F1.", source="P2 3.5 item 4",
        version=1,
    ),
)  # fmt: skip

INTERRUPTION_CARDS: Final[tuple[MetricCard, ...]] = (
    MetricCard(
        id="interruption_stopped", track="conversation", title="Stops when interrupted",
        unit="share of interruptions", direction="higher", statistic="rate",
        window="a recording: from where the user starts while the system speaks",
        denominator="interruptions by the user",
        excluded="backchannels of the user; recordings without an interruption",
        edge_cases="Stopped: the system's speech ends within 2 s of the user's start, while the user still speaks, and "
        "does not begin again before the user has finished. Whether it would have ended anyway cannot be told.",
        source="ours", version=1, ours=True,
    ),
    MetricCard(
        id="interruption_stop_latency", track="conversation", title="Stop latency", unit="s", direction="lower",
        statistic="median", window="a recording: from where the user starts while the system speaks",
        denominator="interruptions at which the system stopped", excluded="interruptions it spoke through",
        edge_cases="End of the system's speech minus the user's start, gaps up to 0.25 s joined.", source="ours",
        version=1, ours=True,
    ),
    MetricCard(
        id="backchannel_kept_on", track="conversation", title="Keeps on through a backchannel",
        unit="share of backchannels", direction="higher", statistic="rate",
        window="a recording: from where the user's backchannel starts while the system speaks",
        denominator="backchannels of the user over the system", excluded="recordings without one",
        edge_cases="A backchannel is labelled so, or lasts at most 1 s and has at most two words.", source="ours",
        version=1, ours=True,
    ),
    MetricCard(
        id="system_interruption_overlap", track="conversation", title="Overlap when the system interrupts", unit="s",
        direction="lower", statistic="median", window="a recording: from where the system starts while the user speaks",
        denominator="interruptions by the system", excluded="recordings without one",
        edge_cases="From the system's start to the first of the two to end.", source="ours", version=1, ours=True,
    ),
    MetricCard(
        id="floor_taken_while_going", track="conversation", title="Took the floor while the user was still going",
        unit="share of unfinished stops", direction="lower", statistic="rate",
        window="a recording: where the user stops without having finished",
        denominator="the user's scored pauses, and the user's turn ends after which the user speaks again within 5 s, "
        "not as a backchannel, while the system speaks",
        excluded="other turn ends; pauses without a takeover score",
        edge_cases="In a recording the person reacts: a pause at which the system keeps the floor is labelled a turn "
        "end (design 15.1), so the takeover share of pauses alone understates. Pauses count as that share does; each "
        "such turn end counts as taken. The system must have begun after the user's turn began. A user who had "
        "finished and then interrupts the reply within 5 s looks the same and is counted too.",
        source="ours", version=1, ours=True,
    ),
)  # fmt: skip

_RECALL: Final = "from the end of the spoken question to the end of the rollout, at most 30 s"

RECALL_CARDS: Final[tuple[MetricCard, ...]] = (
    MetricCard(
        id="recall_correct", track="conversation", title="Recall, judged", unit="share of rollouts", direction="higher",
        statistic="rate", window=_RECALL, denominator=_ROLLOUTS, excluded=f"{_FAILED}; answers without a verdict",
        edge_cases="The answer is every word from the question's end on, or under way at it. Nothing said is "
        "incorrect, and no judge is asked. Conversation recall and fact recall are never pooled.",
        source="P2 3.5 item 5", version=1,
    ),
    MetricCard(
        id="recall_strict", track="conversation", title="Recall, strict matcher", unit="share of rollouts",
        direction="higher", statistic="rate", window=_RECALL, denominator=_ROLLOUTS, excluded=_FAILED,
        edge_cases="Content words of the gold answer in the transcript, without stemming: all of them for fact recall, "
        "at least half for conversation recall (the profile may say otherwise). Nothing said is incorrect.",
        source="P2 appendix E, table 12", version=1,
    ),
    MetricCard(
        id="recall_answered", track="conversation", title="Said anything to the question", unit="share of rollouts",
        direction="higher", statistic="rate", window=_RECALL, denominator=_ROLLOUTS, excluded=_FAILED,
        edge_cases="At least one transcribed word of answer.", source="ours", version=1, ours=True,
    ),
)  # fmt: skip

CARDS: Final = (*POINT_CARDS, *RECALL_CARDS, *INTERRUPTION_CARDS)
RECALL_METRICS: Final = tuple(card.id for card in RECALL_CARDS)

PAUSE_SHARES: Final = ("pause_silent", "pause_wordless", "pause_takeover", "pause_after", "pause_no_audio")
PAUSE_METRICS: Final = (
    *PAUSE_SHARES, "takeover_latency", "takeover_already_under_way", "first_word_from_pause_start",
    "first_word_from_pause_end",
)  # fmt: skip
TURN_END_METRICS: Final = tuple(card.id for card in POINT_CARDS if card.id not in PAUSE_METRICS)

_BY_ID: Final = {card.id: card for card in CARDS}


def card(metric: str) -> MetricCard:
    """The card of a metric.

    Raises:
        KeyError: there is no such conversation metric.
    """
    return _BY_ID[metric]


def markdown(cards: Sequence[MetricCard] = CARDS) -> str:
    """The documentation page of the metrics (docs/metrics-conversation.md is this text)."""
    lines = [
        "# Conversation metrics",
        "",
        "Written from `duplex_bench/conversation/cards.py`; change the cards, not this page.",
        "",
        "P2 is the paper in which the metric is defined; *ours* marks what it leaves open. A score is a value or a",
        "reason. Metrics of pauses and of turn ends are never pooled, and there is no total.",
    ]
    for one in cards:
        marks = [mark for mark, on in (("headline", one.headline), ("ours", one.ours)) if on]
        lines += ["", f"## {one.title}", "", f"`{one.id}`" + (f" ({', '.join(marks)})" if marks else ""), ""]
        lines += ["| | |", "|---|---|"]
        for item in fields(one):
            if item.name in {"id", "track", "title", "headline", "ours"} or getattr(one, item.name) is None:
                continue
            lines.append(f"| {item.name.replace('_', ' ')} | {getattr(one, item.name)} |")
    return "\n".join(lines) + "\n"
