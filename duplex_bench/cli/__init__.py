"""The duplex-bench command line."""
