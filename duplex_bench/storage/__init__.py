"""Digests, the object store, the item ledger, provenance, and model files checked by hash."""
