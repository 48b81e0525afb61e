"""The session contract a system speaks: types, wire codec, worker. Standard library and numpy only."""
