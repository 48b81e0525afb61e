"""Figures from stored tables: one function each, one style, deterministic vector output."""

from duplex_bench.reporting.figures.draw import Drawn, draw_figures, draw_sketches

__all__ = ["Drawn", "draw_figures", "draw_sketches"]
