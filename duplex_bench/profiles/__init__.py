"""Profiles shipped with the package: every number a run may change, as TOML data."""
