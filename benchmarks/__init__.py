"""Speed of the parts that must be fast, as ratios measured side by side in one run. `make bench` runs them all."""
