"""Servers on loopback, or in memory, that speak the protocols of hosted realtime systems and truly listen."""
