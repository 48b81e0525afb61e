"""Run inside an engine's own environment: standard library, numpy and that engine's package, nothing else of ours."""
