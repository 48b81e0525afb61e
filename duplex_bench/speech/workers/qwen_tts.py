"""Qwen3-TTS inside its own environment: custom voices, or cloned ones, in batches.

Settings: ``package_version``, ``model`` (folder), ``device``, ``dtype``, ``attention`` (may be empty). Requests:

- ``speak``: ``texts``, ``speakers`` (one each), ``language``, ``seed``, ``most_codes``, ``sampling`` (options of
  ``generate``). Answer: one array a text.
- ``clone``: ``texts``, ``language``, ``seed``, ``most_codes``, ``sampling``, ``reference_rate_hz``, ``reference_text``
  (None: the speaker vector alone); one array, the reference. Answer: one array a text.

Answers carry ``sample_rate_hz``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from duplex_bench.speech.workers.serving import require_version, serve

if TYPE_CHECKING:
    from duplex_bench.speech.workers.serving import Answer, Arrays, Handler


def engine(settings: dict[str, Any]) -> Handler:
    """Load the model and return what answers requests.

    Raises:
        ValueError: another version of the package is installed.
    """
    require_version("qwen-tts", settings["package_version"])
    import torch
    from qwen_tts import Qwen3TTSModel

    options = {"device_map": settings["device"], "dtype": getattr(torch, settings["dtype"])}
    if settings.get("attention"):
        options["attn_implementation"] = settings["attention"]
    model = Qwen3TTSModel.from_pretrained(settings["model"], **options)

    def answer(header: dict[str, Any], arrays: Arrays) -> Answer:
        texts = header["texts"]
        common = {
            "text": texts,
            "language": [header["language"]] * len(texts),
            "max_new_tokens": header["most_codes"],
            **header["sampling"],
        }
        # The package takes no seed: it samples from torch's global generators.
        torch.manual_seed(header["seed"])
        if header["kind"] == "speak":
            clips, rate = model.generate_custom_voice(speaker=header["speakers"], **common)
        elif header["kind"] == "clone":
            reference_text = header["reference_text"]
            prompt = model.create_voice_clone_prompt(
                ref_audio=(arrays[0], header["reference_rate_hz"]),
                ref_text=reference_text,
                x_vector_only_mode=reference_text is None,
            )
            clips, rate = model.generate_voice_clone(voice_clone_prompt=prompt, **common)
        else:
            raise ValueError(f"unknown request {header['kind']!r}")
        spoken = [np.asarray(clip, dtype=np.float32).reshape(-1) for clip in clips]
        return {"kind": "spoken", "sample_rate_hz": int(rate)}, spoken

    return answer


if __name__ == "__main__":
    serve(engine)
