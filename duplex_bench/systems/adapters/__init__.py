"""One module per system: its factory is named by a card as ``module:callable``."""
