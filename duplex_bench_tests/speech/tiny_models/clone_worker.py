"""A cloning worker without a model: says the recording it is given over and over, and keeps what it was sent.

``model`` is a folder; beside it lie ``sent-<n>.npy``, one a request. A text that begins with "Mute" comes back silent,
one with "Die" ends the worker.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duplex_bench.speech.workers.serving import serve

if TYPE_CHECKING:
    from duplex_bench.speech.workers.serving import Answer, Arrays, Handler

CODES_PER_SECOND = 12.5


def engine(settings: dict[str, Any]) -> Handler:
    folder, numbers = Path(settings["model"]).parent, itertools.count()

    def answer(header: dict[str, Any], arrays: Arrays) -> Answer:
        if header["kind"] != "clone" or len(arrays) != 1:
            raise ValueError(f"not a request to clone: {header['kind']!r} with {len(arrays)} recordings")
        np.save(folder / f"sent-{next(numbers)}.npy", arrays[0])
        rate = int(header["reference_rate_hz"])
        clips = []
        for text in header["texts"]:
            if text.startswith("Die"):
                os._exit(9)
            # Half of what is allowed is about as long as the text should take.
            n_samples = round(header["most_codes"] / 2 / CODES_PER_SECOND * rate)
            clip = np.resize(arrays[0], n_samples).astype(np.float32)
            clips.append(np.zeros_like(clip) if text.startswith("Mute") else clip)
        return {"kind": "spoken", "sample_rate_hz": rate}, clips

    return answer


if __name__ == "__main__":
    serve(engine)
