"""The code location."""
