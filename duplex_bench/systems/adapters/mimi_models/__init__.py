"""Models that speak in Mimi's frames, stepped in process: run in the models' own environments, import the contract."""
