"""Prompts of the recall probes, as reviewed files with id, version and hash."""
