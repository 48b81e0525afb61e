"""Text LLM providers: schema-constrained calls, retries, whole-request cache, spend."""
