"""Rubrics, verdicts, the strict matcher, the acknowledgement lexicon and agreement."""
