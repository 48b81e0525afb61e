"""The conversation track (P2): sessions, liveliness, labels, points, measures, metric cards."""
