"""A worker without a model, for tests of the plumbing: it echoes, fails, dies or goes quiet as asked."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from duplex_bench.speech.workers.serving import require_version, serve

if TYPE_CHECKING:
    from duplex_bench.speech.workers.serving import Answer, Arrays, Handler


def engine(settings: dict[str, Any]) -> Handler:
    if "version" in settings:
        require_version("numpy", settings["version"])

    def answer(header: dict[str, Any], arrays: Arrays) -> Answer:
        kind = header["kind"]
        if kind == "fail":
            raise RuntimeError("out of memory on the device")
        if kind == "die":
            os.write(2, b"Killed by the test\n")
            os._exit(9)
        if kind == "hang":
            threading.Event().wait()
        return {"kind": "echo", "pid": os.getpid(), "environment": sorted(os.environ), **settings}, arrays

    return answer


if __name__ == "__main__":
    serve(engine)
