"""The embedded script engine: a grammar over domains and scenario families whose answers are computed."""

from duplex_bench.multiparty.grammar.engine import generate_pairs, iterate_pairs
from duplex_bench.multiparty.grammar.settings import SIZES, GrammarError, GrammarSettings, ScriptSize

__all__ = ["SIZES", "GrammarError", "GrammarSettings", "ScriptSize", "generate_pairs", "iterate_pairs"]
