"""A checkpoint of Moshi's kind: by hub name from the local cache, or a folder with its files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIG = "config.json"
_FILES = {
    "moshi_name": "model.safetensors",
    "mimi_name": "tokenizer-e351c8d8-checkpoint125.safetensors",
    "tokenizer_name": "tokenizer_spm_32k_3.model",
}
# The context of the 7B model, for checkpoints without a config file.
DEFAULT_CONTEXT = 3000


class CheckpointError(ValueError):
    """A checkpoint that is not there or lacks a file; the message says what is wanted."""


@dataclass(frozen=True)
class Loaded:
    """The codec, the language model, the tokenizer, and the frames that the model attends to."""

    mimi: Any
    lm: Any
    tokenizer: Any
    context_frames: int
    generation: dict[str, Any]


def load(model: str, device: str, dtype: str) -> Loaded:
    """Load ``model``.

    Args:
        model: Name of a hub repository whose files are in the local cache, or a folder.
        device: As torch names it.
        dtype: As torch names it; of the language model.

    Raises:
        CheckpointError: No such folder, a file is missing, or the hub's cache does not hold it.
    """
    import torch

    info = _of_folder(Path(model)) if Path(model).is_dir() else _of_hub(model)
    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise CheckpointError(f"dtype {dtype!r} is none of torch: say bfloat16, float16 or float32")
    context = (info.lm_config or {}).get("context", DEFAULT_CONTEXT)
    return Loaded(
        info.get_mimi(device=device),
        info.get_moshi(device=device, dtype=kind).eval(),
        info.get_text_tokenizer(),
        int(context),
        dict(info.lm_gen_config),
    )


def _of_folder(folder: Path) -> Any:
    from moshi.models import loaders

    config = json.loads((folder / CONFIG).read_text("utf-8")) if (folder / CONFIG).is_file() else {}
    paths = {}
    for key, usual in _FILES.items():
        path = folder / str(config.get(key, usual)).removeprefix("file://")
        if not path.is_file():
            raise CheckpointError(f"{folder} lacks {path.name}: a checkpoint has {', '.join(_FILES.values())}")
        paths[key] = f"file://{path}"
    return loaders.CheckpointInfo.from_hf_repo(
        str(folder),
        moshi_weights=paths["moshi_name"],
        mimi_weights=paths["mimi_name"],
        tokenizer=paths["tokenizer_name"],
        config_path=_config_of(folder),
    )


def _config_of(folder: Path) -> Path:
    if not (folder / CONFIG).is_file():
        # Without one the package would ask the hub for it.
        raise CheckpointError(f"{folder} lacks {CONFIG}: copy it from the model's repository with the weights")
    return folder / CONFIG


def _of_hub(model: str) -> Any:
    from moshi.models import loaders

    try:
        return loaders.CheckpointInfo.from_hf_repo(model)
    except OSError as error:
        raise CheckpointError(
            f"{model} is no folder, and not in the hub's local cache ({type(error).__name__}): download it there with "
            "your own tools, or set `model` in the card to a folder that holds its files"
        ) from error
    except ValueError as error:
        raise CheckpointError(f"{model} is no folder and no name of a repository: {error}") from error
