"""Dagster definitions, thin: a folder per stage with its assets and checks."""
