"""Dagster-side helpers: IO manager, resources, metadata, run coordinator, conditions."""
