"""Voila's autonomous model, stepped in process: runs in the model's own environment, imports the contract alone."""
