"""Files that `duplex-bench init` writes where there is no checkout."""
