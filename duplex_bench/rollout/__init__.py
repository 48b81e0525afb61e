"""Drivers that run one system on one stimulus, playback of what a listener hears, record and resume."""
