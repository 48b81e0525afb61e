"""The conversation track from recordings to items."""
