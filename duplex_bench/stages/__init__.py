"""One function per asset: composes the rooms below. No Dagster."""
