"""Backup and restore: everything that cannot be made again for free, copied whole, checked by hash, put back."""
