"""Talking to a system from a browser, and listening in while an item is played to it."""
