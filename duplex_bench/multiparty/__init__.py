"""The multiparty track (P1): scenario, pair, scene, windows, measures, metric cards."""
