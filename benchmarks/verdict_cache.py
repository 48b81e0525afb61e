"""Looking up a verdict that was bought before. `python -m benchmarks.verdict_cache`.

2,000 stored responses; every question is asked again through the whole judge: request, key, file, parsing, schema.
"""

import json
import tempfile
import time
from pathlib import Path

from duplex_bench.judging.model_judge import ModelJudge
from duplex_bench.records.score import Question
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.settings import ModelSettings
from duplex_bench.textmodels.wire import WireRequest

N_VERDICTS, LIMIT_MS = 2_000, 1.0


class _Answers:
    """Stands in for a provider: the same verdict every time."""

    def send(self, wire: WireRequest) -> str:
        said = json.dumps({"reason": "the number is the same", "verdict": "correct"})
        choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        return json.dumps({"model": wire.body["model"], "choices": [choice],
                           "usage": {"prompt_tokens": 300, "completion_tokens": 20}})  # fmt: skip


def measure() -> dict[str, float]:
    """Milliseconds for one look-up, CPU time."""
    with tempfile.TemporaryDirectory() as folder:
        judge = ModelJudge(
            TextModel(ModelSettings("openai", "gpt-4o"), FolderStore(Path(folder)), connect=lambda _: _Answers())
        )
        asked = [
            Question(f"q{number}", "w", "answer_correctness",
                     {"gold": "fifteen", "answer": f"That makes {number}.", "request": "How many are there?"})
            for number in range(N_VERDICTS)
        ]  # fmt: skip
        for question in asked:
            judge.judge(question)
        started = time.process_time()
        found = [judge.judge(question).verdict for question in asked]
        took_s = time.process_time() - started
    if found != ["correct"] * N_VERDICTS:
        raise RuntimeError("a stored verdict was not found")
    return {"milliseconds": 1000 * took_s / N_VERDICTS, "limit_ms": LIMIT_MS}


def main() -> int:
    """Print the number; 1 if the limit is missed."""
    result = measure()
    print(f"verdict cache: {result['milliseconds']:.2f} ms a look-up (limit {LIMIT_MS:g} ms)")
    return int(result["milliseconds"] > LIMIT_MS)


if __name__ == "__main__":
    raise SystemExit(main())
