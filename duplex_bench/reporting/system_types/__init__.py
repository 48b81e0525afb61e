"""What full-duplex and endpointer-dependent systems do differently, held against what the papers found."""

from duplex_bench.reporting.system_types.section import TypesSection, types_section

__all__ = ["TypesSection", "types_section"]
