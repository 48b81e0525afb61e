"""Accounting of pairs and audio, as P1 A2.2, A2.4 and A2.5 print it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from duplex_bench.audio.time import to_seconds
from duplex_bench.multiparty.scenes import SceneLayout
from duplex_bench.multiparty.scripts import SILENCE_TYPES, TURN_TYPES, Pair, Script, Utterance

ClipKey = tuple[str, str]


def clip_key(utterance: Utterance) -> ClipKey:
    """What makes two clips the same one: who speaks (a fixed voice) and what is said."""
    return utterance.speaker, utterance.text


@dataclass(frozen=True, slots=True)
class Accounting:
    """Pair and audio totals. ``hours_played`` counts clips each time they occur, with the gaps between turns;
    neither counts the preamble, the gap after it, or the tail.
    """

    n_pairs: int
    n_conversations: int
    rewrite_changed_only_t: int
    differ_only_in_t: int
    same_gold_answer: int
    n_clips_played: int
    n_distinct_clips: int
    n_clips_shared_in_pair: int
    hours_played: float
    hours_distinct_clips: float


def distinct_clips(pairs: Iterable[Pair]) -> list[ClipKey]:
    """Every clip that has to be spoken, once, in order of first use: what speech synthesis is asked for."""
    keys = (clip_key(turn) for pair in pairs for script in (pair.explicit, pair.implicit) for turn in script.utterances)
    return list(dict.fromkeys(keys))


def conversation_samples(script: Script, clip_samples: Mapping[ClipKey, int], layout: SceneLayout) -> int:
    """Length of a conversation in samples, from its first onset to the end of its last turn.

    Raises:
        ValueError: a clip's length is missing.
    """
    missing = [turn.utterance_id for turn in script.utterances if clip_key(turn) not in clip_samples]
    if missing:
        raise ValueError(f"script {script.script_id}: the clip of {missing[0]} has no length: synthesise it first")
    spoken = sum(clip_samples[clip_key(turn)] for turn in script.utterances)
    return spoken + sum(layout.gap_samples(script.scenario_id, turn) for turn in script.utterances[:-1])


def account(pairs: Sequence[Pair], clip_samples: Mapping[ClipKey, int], layout: SceneLayout) -> Accounting:
    """Totals over ``pairs``; ``clip_samples`` are clip lengths at the layout's rate.

    Raises:
        ValueError: a clip's length is missing.
    """
    scripts = [script for pair in pairs for script in (pair.explicit, pair.implicit)]
    rate = layout.sample_rate_hz
    played = sum(conversation_samples(script, clip_samples, layout) for script in scripts)
    distinct = distinct_clips(pairs)
    shared = 0
    for pair in pairs:
        shared += len(
            {clip_key(turn) for turn in pair.explicit.utterances}
            & {clip_key(turn) for turn in pair.implicit.utterances}
        )
    return Accounting(
        n_pairs=len(pairs),
        n_conversations=len(scripts),
        rewrite_changed_only_t=sum(pair.rewritten == (pair.explicit.request.utterance_id,) for pair in pairs),
        differ_only_in_t=sum(pair.differing == (pair.explicit.request.utterance_id,) for pair in pairs),
        same_gold_answer=sum(pair.explicit.gold_answer == pair.implicit.gold_answer for pair in pairs),
        n_clips_played=sum(len(script.utterances) for script in scripts),
        n_distinct_clips=len(distinct),
        n_clips_shared_in_pair=shared,
        hours_played=to_seconds(played, rate) / 3600,
        hours_distinct_clips=to_seconds(sum(clip_samples[key] for key in distinct), rate) / 3600,
    )


def duration_statistics(
    pairs: Sequence[Pair], clip_samples: Mapping[ClipKey, int], layout: SceneLayout
) -> pl.DataFrame:
    """Seconds of conversations by condition and number of humans, of turns by type: one row a group (P1 A2.5).

    Columns: ``what`` (conversation or turn), ``group``, ``n``, ``min_s``, ``q1_s``, ``median_s``, ``mean_s``,
    ``q3_s``, ``max_s``, ``total_s``.
    """
    seconds: dict[tuple[str, str], list[float]] = {}
    for pair in pairs:
        for script in (pair.explicit, pair.implicit):
            length = to_seconds(conversation_samples(script, clip_samples, layout), layout.sample_rate_hz)
            for group in (script.condition, f"{script.n_humans} humans"):
                seconds.setdefault(("conversation", group), []).append(length)
            for turn in script.utterances:
                spoken = to_seconds(clip_samples[clip_key(turn)], layout.sample_rate_hz)
                seconds.setdefault(("turn", turn.turn_type), []).append(spoken)
    rows = []
    for (what, group), values in sorted(seconds.items()):
        low, q1, median, q3, high = (float(value) for value in np.quantile(values, (0, 0.25, 0.5, 0.75, 1)))
        rows.append((what, group, len(values), low, q1, median, float(np.mean(values)), q3, high, float(sum(values))))
    names = ["what", "group", "n", "min_s", "q1_s", "median_s", "mean_s", "q3_s", "max_s", "total_s"]
    return pl.DataFrame(rows, schema=names, orient="row")


def composition(pairs: Sequence[Pair]) -> pl.DataFrame:
    """What the draw holds, by condition: counts a conversation of every turn type, humans, request position (A2.2).

    Shares (``with ...``) are means of 0 and 1. Columns: ``condition``, ``quantity``, ``n``, ``mean``, ``min``, ``max``.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for pair in pairs:
        for script in (pair.explicit, pair.implicit):
            kinds = [turn.turn_type for turn in script.utterances]
            measured: dict[str, float] = {f"turns {kind}": kinds.count(kind) for kind in TURN_TYPES}
            measured |= {
                "turns": len(kinds),
                "silence turns (N1 to N3)": sum(kinds.count(kind) for kind in SILENCE_TYPES),
                "decided turns (T, N1 to N3, N4Q)": len(kinds) - kinds.count("N4R"),
                "with a question that a human resolves (N4)": float("N4Q" in kinds),
                "humans": script.n_humans,
                "with four humans": float(script.n_humans == 4),
                "words": sum(len(turn.text.split()) for turn in script.utterances),
                "request position (0 first, 1 last)": kinds.index("T") / max(1, len(kinds) - 1),
            }
            for quantity, value in measured.items():
                found.setdefault((script.condition, quantity), []).append(value)
    rows = [
        (condition, quantity, len(values), float(np.mean(values)), float(min(values)), float(max(values)))
        for (condition, quantity), values in sorted(found.items())
    ]
    return pl.DataFrame(rows, schema=["condition", "quantity", "n", "mean", "min", "max"], orient="row")
