"""Cards, the registry, one module per adapter, conformance, and environments of their own."""
