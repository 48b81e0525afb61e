"""The multiparty track from scripts to items."""
