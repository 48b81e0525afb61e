"""The label review page and its store."""
