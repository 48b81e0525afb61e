"""Writes the page of metric cards: ``python -m duplex_bench.multiparty.docs docs/metrics-multiparty.md``."""

import sys
from pathlib import Path

from duplex_bench.multiparty.cards import as_markdown

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(as_markdown(), encoding="utf-8")
