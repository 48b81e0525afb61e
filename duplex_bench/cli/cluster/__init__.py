"""``duplex-bench cluster``: database, broker, object store, daemon, web server and workers of a cluster, on loopback."""
