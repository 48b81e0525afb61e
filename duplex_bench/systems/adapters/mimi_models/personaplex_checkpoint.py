"""PersonaPlex's files on the package's own classes (docs/systems/personaplex.md).

Its depth model has sixteen heads: eight for the model's own codes, then eight that predict the user's. In a
conversation the user's codes are given, and later heads change none before them: the first eight are loaded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from duplex_bench.systems.adapters.mimi_models.checkpoint import DEFAULT_CONTEXT, CheckpointError, Loaded

WEIGHTS = "model.safetensors"
CODEC = "tokenizer-e351c8d8-checkpoint125.safetensors"
TOKENIZER = "tokenizer_spm_32k_3.model"
# Ours: described only where weights are smaller than the published ones, which need no description.
CONFIG = "duplex_bench.json"
N_HEADS = 8
_PER_HEAD = re.compile(r"^(?:depformer_in|depformer_norms|linears|depformer\.layers\.\d+\.gating)\.(\d+)\.")
_EMBEDDING = re.compile(r"^depformer_emb\.(\d+)\.")
_SPLIT = re.compile(r"^depformer\.layers\.\d+\.self_attn\.(?:in|out)_projs\.(\d+)\.")
_JOINED = re.compile(r"^depformer\.layers\.\d+\.self_attn\.(?:in_proj_weight|in_proj\.weight|out_proj\.weight)$")


def load_personaplex(model: str, device: str, dtype: str) -> Loaded:
    """Load the files of ``model``: a folder, or a hub repository's in the local cache.

    Args:
        model: As above.
        device: As torch names it.
        dtype: As torch names it; of the language model.

    Raises:
        CheckpointError: A file is missing, or its tensors are not those of this model.
    """
    import sentencepiece
    import torch
    from moshi.models import loaders

    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise CheckpointError(f"dtype {dtype!r} is none of torch: say bfloat16, float16 or float32")
    weights, codec, tokenizer = (_file(model, name) for name in (WEIGHTS, CODEC, TOKENIZER))
    described = _described(Path(model) / CONFIG)
    # Without weights the package draws random ones; on this device that costs nothing.
    arguments = {**(described.get("lm") or loaders._lm_kwargs), "dep_q": N_HEADS}
    lm = loaders.get_moshi_lm(None, lm_kwargs=arguments, device="meta", dtype=kind)
    _fill(lm, weights, device, kind)
    mimi = loaders.get_mimi(codec, mimi_config=described.get("mimi"), device=device, num_codebooks=N_HEADS)
    context = int(arguments.get("context") or DEFAULT_CONTEXT)
    return Loaded(mimi, lm.eval(), sentencepiece.SentencePieceProcessor(str(tokenizer)), context, {})


def first_heads(state: dict[str, Any], per_head: dict[str, int]) -> dict[str, Any]:
    """The tensors of the first eight heads, and all that belongs to none.

    Args:
        state: Tensors by name; heads by number, or joined along the first axis as older packages wrote attention.
        per_head: Rows of one head of each joined tensor, by name.

    Raises:
        CheckpointError: A joined tensor holds no whole number of heads, or fewer than eight.
    """
    kept: dict[str, Any] = {}
    for name, tensor in state.items():
        numbered = _PER_HEAD.match(name) or _SPLIT.match(name)
        embedded = _EMBEDDING.match(name)
        # The first head reads the text: head k reads the code of head k - 1.
        if (numbered and int(numbered[1]) >= N_HEADS) or (embedded and int(embedded[1]) >= N_HEADS - 1):
            continue
        if _JOINED.match(name):
            rows = per_head[name]
            if tensor.shape[0] % rows or tensor.shape[0] < N_HEADS * rows:
                raise CheckpointError(
                    f"{name} has {tensor.shape[0]} rows where a head has {rows}: these are no weights of PersonaPlex"
                )
            tensor = tensor[: N_HEADS * rows].clone()
        kept[name] = tensor
    return kept


def _fill(lm: Any, weights: Path, device: str, dtype: Any) -> None:
    from safetensors.torch import load_file

    shapes = {name: tuple(value.shape) for name, value in lm.state_dict().items()}
    rows: dict[str, int] = {}
    for name, (first, *_) in ((name, shape) for name, shape in shapes.items() if _SPLIT.match(name)):
        which = "in" if ".in_projs." in name else "out"
        stem = name[: name.index(f".{which}_projs.")]
        rows |= dict.fromkeys((f"{stem}.{which}_proj_weight", f"{stem}.{which}_proj.weight"), first)
    state = first_heads(load_file(weights, device=device), rows)
    try:
        lm.load_state_dict({name: tensor.to(dtype) for name, tensor in state.items()}, assign=True)
    except RuntimeError as error:
        told = " ".join(str(error).split())[:600]
        raise CheckpointError(f"{weights.name} does not fit the model's classes in this environment: {told}") from error


def _file(model: str, name: str) -> Path:
    if Path(model).is_dir():
        path = Path(model) / name
        if not path.is_file():
            raise CheckpointError(f"{model} lacks {name}: the model has {WEIGHTS}, {CODEC} and {TOKENIZER}")
        return path
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(model, name, local_files_only=True))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{model} is no folder, and its {name} not in the hub's local cache ({type(error).__name__}): accept the "
            "licence and download it there with your own tools, or set `model` of the card to a folder that has it"
        ) from error


def _described(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}
