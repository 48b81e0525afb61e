"""Which words were said in a stretch of a rollout."""

from collections.abc import Sequence

from duplex_bench.records.audio import TimedWord


def placed(words: Sequence[TimedWord]) -> list[tuple[float, float, str]]:
    """Words as (start, end, text) in seconds. One without times lies between its placed neighbours.

    Words before the first or after the last placed one take that one's time; where no word has a time, none can be
    placed and the result is empty.
    """
    times = [
        (word.start_s, word.end_s) if word.start_s is not None and word.end_s is not None else None for word in words
    ]
    result: list[tuple[float, float, str]] = []
    for number, word in enumerate(words):
        own = times[number]
        if own is None:
            before = next((known[1] for known in reversed(times[:number]) if known), None)
            after = next((known[0] for known in times[number + 1 :] if known), None)
            if before is None and after is None:
                continue
            start = before if before is not None else after
            end = after if after is not None else before
            if start is None or end is None:
                continue
            own = (min(start, end), max(start, end))
        result.append((own[0], own[1], word.text))
    return result


def text_in(words: Sequence[TimedWord], start_s: float, stop_s: float) -> str:
    """The words that overlap [``start_s``, ``stop_s``), in order; one that straddles an edge belongs to both sides."""
    return " ".join(
        text
        for start, end, text in placed(words)
        if (start < stop_s and end > start_s) or (start == end and start_s <= start < stop_s)
    ).strip()
