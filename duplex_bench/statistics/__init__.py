"""Intervals, paired tests, agreement and power: arrays in, numbers out."""
