"""Samples, time, files, mixing, the energy gate and activity bridging. No models."""
