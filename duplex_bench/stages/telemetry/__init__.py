"""What runs tell machines: JSON log lines, and counts for Prometheus that outlive the processes that counted."""
