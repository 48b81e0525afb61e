"""duplex_bench: how full-duplex and realtime speech systems behave in conversation.

The rooms of the package, from the ground up, are listed in ``docs/architecture.md``; a room imports only
rooms below it. Importing this module loads nothing else, so that the session contract can run inside
foreign environments.
"""

__version__ = "0.1.0"
