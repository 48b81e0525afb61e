"""How lively a conversation is: six traits, each ranked within the corpus (P2 section 3.1 and appendix A).

The paper names the traits; the formulas below are ours where it gives none, and each says so.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from duplex_bench.conversation.label_passes import close_gaps
from duplex_bench.conversation.label_types import SPEAKERS, SpeakerTrack, Word
from duplex_bench.conversation.sessions import Session

TRAITS: Final = (
    "speech_time_balance",
    "alternations_per_minute",
    "short_utterance_share",
    "question_rate",
    "one_minus_longest_monologue_share",
    "overlaps_per_minute",
)
PAPER_CUTOFF: Final = 0.75

_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TraitRules:
    """Numbers of the trait formulas (all ours; the paper gives none).

    Attributes:
        utterance_gap_s: speech of one speaker with gaps up to this is one utterance.
        short_max_s: an utterance of at most this ...
        short_max_words: ... and at most this many words is short.
    """

    utterance_gap_s: float = 0.25
    short_max_s: float = 1.0
    short_max_words: int = 2


def score(traits: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Liveliness of n conversations: the mean of their six percentile ranks (average rank / n).

    Args:
        traits: (n, 6), one row a conversation, more of each trait being livelier. Ties share their average rank.

    Returns:
        float64 (n,), in (0, 1].

    Raises:
        ValueError: another shape, or a value that is not finite (the message names the row).

    Source: P2 section 3.1; percentile rank settled in design 8.
    """
    values = np.asarray(traits, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(TRAITS):
        raise ValueError(f"traits have shape {values.shape}: give (n, {len(TRAITS)}), one row a conversation")
    if not np.isfinite(values).all():
        row, column = (int(index) for index in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"row {row}: {TRAITS[column]} is {values[row, column]}: leave the conversation out")
    if len(values) == 0:
        return np.zeros(0)
    ranks: npt.NDArray[np.float64] = rankdata(values, method="average", axis=0) / len(values)
    means: npt.NDArray[np.float64] = ranks.mean(axis=1)
    return means


def select(
    scores: npt.ArrayLike, *, cutoff: float | None = None, top_share: float | None = None
) -> npt.NDArray[np.bool_]:
    """Which conversations to keep: those at or above ``cutoff`` (the paper: 0.75), or the ``top_share`` best.

    With ``top_share``, at least one is kept, the count is rounded up, and ties at the border are kept too, so that the
    order of the rows decides nothing. Neither given: the paper's cutoff.

    Raises:
        ValueError: both given, or a share outside (0, 1].
    """
    values = np.asarray(scores, dtype=np.float64)
    if cutoff is not None and top_share is not None:
        raise ValueError("select by cutoff or by top_share, not by both")
    if top_share is None:
        kept: npt.NDArray[np.bool_] = values >= (PAPER_CUTOFF if cutoff is None else cutoff)
        return kept
    if not 0 < top_share <= 1:
        raise ValueError(f"top_share is {top_share}: give a share above 0, at most 1")
    if len(values) == 0:
        return np.zeros(0, dtype=np.bool_)
    count = int(np.ceil(round(top_share * len(values), 9)))
    border = np.sort(values)[-count]
    best: npt.NDArray[np.bool_] = values >= border
    return best


def traits_of(session: Session, rules: TraitRules | None = None) -> npt.NDArray[np.float64]:
    """The six traits of a session in the order of ``TRAITS``: float64 (6,).

    With utterances = one speaker's speech after joining gaps up to ``utterance_gap_s``:

    1. **balance**: speech time of the quieter speaker / that of the louder, 0 to 1.
    2. **alternations**: changes of speaker between utterances in order of their starts (an utterance wholly inside one
       of the other is passed over: it took no floor), per minute of the session.
    3. **short share**: share of all utterances that are short (at most 1 s and two words).
    4. **question rate**: share of all utterances with words that hold a question: a word ending in "?", or, where the
       transcript of the session has no question mark at all, a first word that opens a question.
    5. **one minus longest monologue's share**: the longest run of one speaker (from the start of its first to the end
       of its last utterance between two alternations) / session length, subtracted from 1.
    6. **overlaps**: stretches where both speak, per minute of the session.

    A session without speech has 0 for all but the fifth, which is 1 minus 0.
    """
    rules = rules or TraitRules()
    minutes = session.duration_s / 60
    sides = [_utterances(session.side(speaker).track, rules) for speaker in SPEAKERS]
    spoken = [sum(end - start for start, end, _ in side) for side in sides]
    utterances = sides[0] + sides[1]
    runs = _runs(sides[0], sides[1])
    longest = max((end - start for start, end in runs), default=0) / _NS
    short = sum(
        end - start <= rules.short_max_s * _NS and len(words) <= rules.short_max_words
        for start, end, words in utterances
    )
    worded = [words for _, _, words in utterances if words]
    marked = any(word.text.rstrip("\"')”’").endswith("?") for words in worded for word in words)
    questions = sum(_asks(words, marked) for words in worded)
    return np.array(
        [
            min(spoken) / max(spoken) if max(spoken) else 0.0,
            max(0, len(runs) - 1) / minutes,
            short / len(utterances) if utterances else 0.0,
            questions / len(worded) if worded else 0.0,
            1.0 - min(1.0, longest / session.duration_s),
            _overlap_count(sides[0], sides[1]) / minutes,
        ]
    )


_Utterance = tuple[int, int, list[Word]]


def _utterances(track: SpeakerTrack, rules: TraitRules) -> list[_Utterance]:
    starts, ends = close_gaps(track.speech, rules.utterance_gap_s)
    utterances: list[_Utterance] = [(start, end, []) for start, end in zip(starts, ends, strict=True)]
    at = 0
    for word in track.words:
        middle = (word.start_s + word.end_s) / 2 * _NS
        while at < len(utterances) and utterances[at][1] <= middle:
            at += 1
        if at < len(utterances) and utterances[at][0] <= middle:
            utterances[at][2].append(word)
    return utterances


def _runs(left: list[_Utterance], right: list[_Utterance]) -> list[tuple[int, int]]:
    """Start and end of each stretch in which one speaker has the floor."""
    ordered = sorted(
        (start, -end, side) for side, utterances in enumerate((left, right)) for start, end, _ in utterances
    )
    runs: list[tuple[int, int]] = []
    holder = -1
    for start, minus_end, side in ordered:
        end = -minus_end
        if runs and side != holder and end <= runs[-1][1]:
            continue
        if side == holder:
            runs[-1] = (runs[-1][0], max(runs[-1][1], end))
        else:
            runs.append((start, end))
            holder = side
    return runs


@cache
def _question_openers() -> frozenset[str]:
    source = files("duplex_bench.conversation").joinpath("data/question_openers.toml")
    return frozenset(tomllib.loads(source.read_text(encoding="utf-8"))["words"])


def _asks(words: Sequence[Word], marked: bool) -> bool:
    if marked:
        return any(word.text.rstrip("\"')”’").endswith("?") for word in words)
    return words[0].text.lower().strip(".,!\"'") in _question_openers()


def _overlap_count(left: list[_Utterance], right: list[_Utterance]) -> int:
    count = i = j = 0
    while i < len(left) and j < len(right):
        count += max(left[i][0], right[j][0]) < min(left[i][1], right[j][1])
        if left[i][1] <= right[j][1]:
            i += 1
        else:
            j += 1
    return count
