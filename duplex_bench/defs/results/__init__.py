"""The report over both tracks."""
