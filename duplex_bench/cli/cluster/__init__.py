"""``duplex-bench cluster``: what a cluster needs beside the package, on loopback, and the work handed to it."""
