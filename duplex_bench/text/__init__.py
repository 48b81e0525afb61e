"""Normalising, content words, word error rate, token F1 and text vectors."""
