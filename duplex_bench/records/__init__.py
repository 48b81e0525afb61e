"""Frozen types and table schemas shared by every room. No logic."""
