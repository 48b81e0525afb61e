"""Statistics tables, figures and the static site: stored tables in, a report folder out."""
