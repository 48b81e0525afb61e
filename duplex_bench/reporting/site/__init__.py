"""The static report folder: opens from disk, needs no network, plays every scored window."""

from duplex_bench.reporting.site.build import build_site

__all__ = ["build_site"]
