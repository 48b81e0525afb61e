"""What the multiparty draw holds, as tables: composition, accounting, durations (P1 A2.2, A2.4, A2.5)."""

import dataclasses
from collections.abc import Mapping, Sequence

import polars as pl

from duplex_bench.multiparty.accounting import account, composition, duration_statistics
from duplex_bench.multiparty.grammar.overlap import SharedText
from duplex_bench.multiparty.items import THIRDS
from duplex_bench.multiparty.scripts import Pair
from duplex_bench.multiparty.voices import VoiceMap
from duplex_bench.reporting.inputs import Table
from duplex_bench.stages.items import items_of
from duplex_bench.stages.profile import MultipartySettings
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.summary import store_tables
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.serial import from_json

# P1 A2.4, beside ours in the table: printed as the paper's, never as a target of another draw.
PAPER_ACCOUNTING: Mapping[str, float] = {
    "n_pairs": 2000,
    "n_conversations": 4000,
    "rewrite_changed_only_t": 1958,
    "differ_only_in_t": 1661,
    "same_gold_answer": 2000,
    "hours_played": 110.93,
    "hours_distinct_clips": 61.10,
}


def inventory(
    workspace: Workspace, pairs_frame: pl.DataFrame, speech: pl.DataFrame, items: pl.DataFrame
) -> StageResult:
    """Composition against what the profile asks for, accounting, and duration statistics of the pairs."""
    settings = workspace.profile.multiparty
    pairs = [from_json(Pair, text) for text in pairs_frame["pair"]]
    voices = VoiceMap()
    lengths = {(row["voice"], row["text"]): row["n_samples"] for row in speech.iter_rows(named=True)}
    spoken = [
        pair
        for pair in pairs
        if all(
            (voices.voice_of(turn.speaker), turn.text) in lengths
            for script in (pair.explicit, pair.implicit)
            for turn in script.utterances
        )
    ]
    samples: dict[tuple[str, str], int] = {
        (turn.speaker, turn.text): int(lengths[(voices.voice_of(turn.speaker), turn.text)])
        for pair in spoken
        for script in (pair.explicit, pair.implicit)
        for turn in script.utterances
    }
    tables = [
        _composition(pairs, settings),
        _thirds(items),
        _accounting(spoken, samples, settings, len(pairs) - len(spoken)),
        Table(
            "multiparty-duration-statistics",
            "Multiparty: how long conversations and turns are",
            "Seconds, of conversations from first onset to last offset with the gaps, without preamble and tail, by "
            "condition and number of humans; of clips by turn type (P1 A2.5, whose values our copy lacks).",
            duration_statistics(spoken, samples, settings.layout),
        ),
    ]
    return store_tables(workspace, tables, {"pairs": len(pairs), "pairs_spoken": len(spoken), "tables": len(tables)})


def _composition(pairs: Sequence[Pair], settings: MultipartySettings) -> Table:
    grammar = settings.grammar
    asked: dict[str, float] = {}
    by_grammar = not settings.scenario_file and settings.engine == "grammar"
    if by_grammar:
        asked = {
            "turns N1": grammar.size.n1_turns_mean,
            "turns N3": grammar.size.n3_turns_mean,
            "turns T": 1.0,
            "turns N4Q": grammar.size.n4_share,
            "turns N4R": grammar.size.n4_share,
            "silence turns (N1 to N3)": grammar.size.silence_turns_mean,
            "decided turns (T, N1 to N3, N4Q)": 1 + grammar.size.silence_turns_mean + grammar.size.n4_share,
            "with a question that a human resolves (N4)": grammar.size.n4_share,
            "with four humans": grammar.four_humans_share,
        }
    frame = composition(pairs)
    revised = sum(len(pair.rewritten) > 1 for pair in pairs) / len(pairs) if pairs else None
    shared = SharedText()
    shares = []
    for pair in pairs:
        shares.append(shared.largest_share(pair.explicit))
        shared.add(pair.explicit)
    more = [
        ("implicit", "rewrite also revises the turn before T", len(pairs), revised, None, None),
        ("explicit", "text shared with one earlier script", len(pairs), sum(shares) / len(shares) if shares else None,
         min(shares, default=None), max(shares, default=None)),
    ]  # fmt: skip
    frame = pl.concat([frame, pl.DataFrame(more, schema=frame.schema, orient="row")])
    if by_grammar:
        asked["rewrite also revises the turn before T"] = grammar.revise_before_share
    limit = pl.when(pl.col("quantity").str.starts_with("text shared")).then(
        pl.lit(f"at most {grammar.max_shared_text:g}" if by_grammar else None)
    )
    target = pl.col("quantity").replace_strict(asked, default=None, return_dtype=pl.Float64)
    frame = frame.with_columns(
        limit.otherwise(pl.when(target.is_not_null()).then(pl.format("mean {}", target.round(3)))).alias("profile")
    )
    domains = len({pair.explicit.domain for pair in pairs})
    families = len({pair.explicit.family for pair in pairs})
    return Table(
        "multiparty-composition",
        "Multiparty: what the scripts hold",
        f"n = {len(pairs)} pairs from {domains} domains and {families} families. Counts for each conversation; "
        "profile says what was asked for (P1 A2.2, whose values our copy lacks; paper.toml derives them, design 7). "
        "Shared text: largest share of a script's four-word sequences that stands in one earlier script.",
        frame,
    )


def _thirds(items: pl.DataFrame) -> Table:
    rows = [
        {
            "condition": item.condition,
            "third": str(item.reference.attributes.get("request_third", "")),
            "request_time_s": float(item.reference.attributes.get("request_time_s", float("nan"))),
        }
        for item in items_of(items).values()
    ]
    schema = {"condition": pl.String, "third": pl.String, "request_time_s": pl.Float64}
    frame = (
        pl.DataFrame(rows, schema=schema)
        .group_by("third", "condition")
        .agg(
            pl.len().cast(pl.Int64).alias("n_requests"),
            pl.col("request_time_s").min().alias("from_s"),
            pl.col("request_time_s").median().alias("median_s"),
            pl.col("request_time_s").max().alias("to_s"),
        )
        .sort(pl.col("third").replace_strict({name: n for n, name in enumerate(THIRDS)}, default=9), "condition")
    )
    return Table(
        "multiparty-request-placement",
        "Multiparty: when requests come",
        "End of T on the stream, preamble included. The three groups hold equally many requests of both conditions "
        "together, so that the conditions within a group need not be equal (P1 A3.6).",
        frame,
    )


def _accounting(
    pairs: Sequence[Pair], samples: Mapping[tuple[str, str], int], settings: MultipartySettings, unspoken: int
) -> Table:
    found = dataclasses.asdict(account(pairs, samples, settings.layout))
    rows = [(name, float(value), PAPER_ACCOUNTING.get(name)) for name, value in found.items()]
    rows.append(("pairs left out because a clip is missing", float(unspoken), None))
    return Table(
        "multiparty-accounting",
        "Multiparty: pairs and hours",
        "rewrite changed only t: the addressing rewrite touched no other turn. differ only in t: nor do the final "
        "scripts. Hours played count clips each time they occur, with gaps, without preamble and tail; hours of "
        "distinct clips count each voice and text once. paper: P1 A2.4, of its own draw.",
        pl.DataFrame(rows, schema={"quantity": pl.String, "here": pl.Float64, "paper": pl.Float64}, orient="row"),
    )
