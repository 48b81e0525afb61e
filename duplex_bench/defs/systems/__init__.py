"""One asset, partitioned by system: the card that says what is run."""
