"""ONNX sessions that give the same bytes each time: one thread, in order."""

from pathlib import Path
from typing import Any


def single_thread_session(path: Path) -> Any:
    """An ``onnxruntime.InferenceSession`` on one CPU thread (more threads give other bytes in hibari and joe)."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
