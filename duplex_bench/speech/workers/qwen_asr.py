"""Qwen3-ASR with Qwen3-ForcedAligner inside their own environment.

Settings: ``package_version``, ``model`` and ``aligner`` (folders), ``device``, ``dtype``, ``attention`` (may be empty),
``most_tokens``. Request ``hear``: ``language`` and one 16 kHz array an utterance. Answer: ``heard``, for each utterance
``text`` and ``words`` as [text, start_s, end_s], the aligner's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duplex_bench.speech.workers.serving import require_version, serve

if TYPE_CHECKING:
    from duplex_bench.speech.workers.serving import Answer, Arrays, Handler

SAMPLE_RATE_HZ = 16000


def engine(settings: dict[str, Any]) -> Handler:
    """Load recogniser and aligner and return what answers requests.

    Raises:
        ValueError: another version of the package is installed.
    """
    require_version("qwen-asr", settings["package_version"])
    import torch
    from qwen_asr import Qwen3ASRModel

    options = {"device_map": settings["device"], "dtype": getattr(torch, settings["dtype"])}
    if settings.get("attention"):
        options["attn_implementation"] = settings["attention"]
    model = Qwen3ASRModel.from_pretrained(
        settings["model"],
        forced_aligner=settings["aligner"],
        forced_aligner_kwargs=dict(options),
        max_new_tokens=settings["most_tokens"],
        **options,
    )

    def answer(header: dict[str, Any], arrays: Arrays) -> Answer:
        if header["kind"] != "hear":
            raise ValueError(f"unknown request {header['kind']!r}")
        results = model.transcribe(
            audio=[(samples, SAMPLE_RATE_HZ) for samples in arrays],
            language=header["language"],
            return_time_stamps=True,
        )
        heard = [
            {
                "text": result.text,
                "words": [
                    [item.text, float(item.start_time), float(item.end_time)]
                    for item in (result.time_stamps.items if result.time_stamps is not None else ())
                ],
            }
            for result in results
        ]
        return {"kind": "heard", "heard": heard}, []

    return answer


if __name__ == "__main__":
    serve(engine)
