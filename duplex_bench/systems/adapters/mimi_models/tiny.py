"""A tiny checkpoint with random weights in the real package's own format, to run its code without its weights.

``python -m duplex_bench.systems.adapters.mimi_models.tiny FOLDER`` writes one; what it says means nothing.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duplex_bench.systems.adapters.mimi_models import personaplex_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from duplex_bench.systems.adapters.mimi_models.checkpoint import Loaded

TINY = "tiny"
# As many as the constant frames of PersonaPlex's preamble need.
CONSTANT_CODES = 2048
_CARD = 24
_CODEC_GAIN = 2.0
_LM_GAIN = 4.0
_CALIBRATION_SAMPLES = 1920 * 16
_MOST_PIECES = 64
_DIM = 64
_LM = {
    "dim": _DIM, "num_heads": 2, "num_layers": 2, "hidden_scale": 2, "n_q": 16, "dep_q": 8, "card": _CARD,
    "existing_text_padding_id": 3, "context": 3000, "max_period": 10000, "causal": True,
    "gating": "silu", "norm": "rms_norm_f32", "positional_embedding": "rope", "depformer_dim": 32,
    "depformer_dim_feedforward": 64, "depformer_num_heads": 2, "depformer_num_layers": 1,
    "depformer_multi_linear": True, "depformer_context": 8, "depformer_max_period": 10000,
    "depformer_gating": "silu", "depformer_pos_emb": "none", "depformer_weights_per_step": True,
    "delays": [0, 0, *[1] * 7, 0, *[1] * 7],
}  # fmt: skip
_TEXT = ("hello there how are you today", "i think the answer is no", "what would you like to talk about then")


def loaded(model: str, write_files: Callable[[Path], None], load: Callable[[str], Loaded]) -> Loaded:
    """``load`` of a model's name or folder; of one that is called ``tiny`` after ``write_files`` wrote it."""
    if model != TINY:
        return load(model)
    with tempfile.TemporaryDirectory(prefix="duplex-tiny-") as folder:
        write_files(Path(folder))
        return load(folder)


def write(folder: Path, seed: int = 0) -> None:
    """Write the checkpoint of ``seed`` into ``folder``: weights, codec, tokenizer, config."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    mimi, config, lm, lm_config, pieces = _made(seed, {})
    files = {"moshi_name": "model.safetensors", "mimi_name": "mimi.safetensors", "tokenizer_name": "tokenizer.model"}
    save_file(_contiguous(lm), folder / files["moshi_name"])
    save_file(_contiguous(mimi), folder / files["mimi_name"])
    (folder / files["tokenizer_name"]).write_bytes(pieces)
    codec = folder / "mimi_config.json"
    codec.write_text(json.dumps(config), encoding="utf-8")
    # The package looks beside nothing: it takes a codec's config by a full address only.
    described = {**lm_config, **files, "mimi_config_name": f"file://{codec.absolute()}", "model_type": "moshi"}
    (folder / "config.json").write_text(json.dumps(described, indent=1), encoding="utf-8")


def write_personaplex(folder: Path, seed: int = 0) -> None:
    """Write files of PersonaPlex's kind into ``folder``: sixteen heads, attention joined as its own package has it."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    mimi, config, lm, lm_config, pieces = _made(seed, {"dep_q": 16, "depformer_context": 16, "card": CONSTANT_CODES})
    save_file(_joined(_contiguous(lm)), folder / personaplex_checkpoint.WEIGHTS)
    save_file(_contiguous(mimi), folder / personaplex_checkpoint.CODEC)
    (folder / personaplex_checkpoint.TOKENIZER).write_bytes(pieces)
    described = {"lm": lm_config, "mimi": config}
    (folder / personaplex_checkpoint.CONFIG).write_text(json.dumps(described, indent=1), encoding="utf-8")


def _made(seed: int, other: dict[str, Any]) -> tuple[Any, dict[str, Any], Any, dict[str, Any], bytes]:
    """Codec, its config, language model, its config, tokenizer."""
    import sentencepiece
    import torch
    from moshi.models import loaders

    torch.manual_seed(seed)
    chosen = {**_LM, **other}
    config = _mimi_config(loaders, chosen["card"])
    mimi = loaders.get_mimi(None, mimi_config=config, num_codebooks=8)
    pieces = _tokenizer()
    lm_config = {**chosen, "text_card": sentencepiece.SentencePieceProcessor(model_proto=pieces).vocab_size()}
    lm = loaders.get_moshi_lm(None, lm_kwargs=lm_config, device="cpu", dtype=torch.float32)
    with torch.no_grad():
        _open_the_codec(mimi)
        for name, weight in lm.named_parameters():
            # As initialised, what it hears moves its choices too little to be seen.
            if "emb" in name or "linear" in name:
                weight.mul_(_LM_GAIN)
    return mimi, config, lm, lm_config, pieces


def _joined(state: dict[str, Any]) -> dict[str, Any]:
    """Attention of the depth model as one tensor for all heads."""
    import torch

    parts: dict[str, list[Any]] = {}
    rest: dict[str, Any] = {}
    for name, tensor in state.items():
        found = re.fullmatch(r"(depformer\..*\.)(in|out)_projs\.\d+\.weight", name)
        if found is None:
            rest[name] = tensor
        else:
            joined = "in_proj_weight" if found[2] == "in" else "out_proj.weight"
            parts.setdefault(found[1] + joined, []).append(tensor)
    return {**rest, **{name: torch.cat(tensors) for name, tensors in parts.items()}}


def _open_the_codec(mimi: Any) -> None:
    """Let sound through: fresh convolutions say the same whatever they hear, and fresh codebooks are all zero."""
    import torch

    for name, weight in mimi.named_parameters():
        if name.endswith("bias") and "norm" not in name:
            weight.zero_()
        elif weight.dim() == 3 and "quantizer" not in name:
            weight.mul_(_CODEC_GAIN)
    levels = torch.tensor([0.01, 0.03, 0.1, 0.3]).repeat_interleave(_CALIBRATION_SAMPLES // 4)
    sound = torch.randn(1, 1, _CALIBRATION_SAMPLES) * levels
    latent = mimi.encode_to_latent(sound, quantize=False)
    for quantizer in (mimi.quantizer.rvq_first, mimi.quantizer.rvq_rest):
        projected = quantizer.input_proj(latent)
        middle, spread = projected.mean(), projected.std()
        for depth, layer in enumerate(quantizer.vq.layers):
            book = layer._codebook
            book.cluster_usage.fill_(1.0)
            # The first layer's entries lie where sounds lie, the others' where what is left of them lies.
            book.embedding_sum.normal_().mul_(spread * 0.7**depth).add_(middle if depth == 0 else 0.0)


def _mimi_config(loaders: Any, bins: int) -> dict[str, Any]:
    seanet = {**loaders._seanet_kwargs, "dimension": 32, "n_filters": 4}
    quantizer = {"dimension": 16, "bins": bins, "n_q": 8, "input_dimension": 32, "output_dimension": 32}
    transformer = {
        **loaders._transformer_kwargs, "d_model": 32, "num_heads": 2, "num_layers": 1, "dim_feedforward": 64,
        "input_dimension": 32, "output_dimensions": [32],
    }  # fmt: skip
    return {
        "sample_rate": loaders.SAMPLE_RATE, "channels": 1, "frame_rate": loaders.FRAME_RATE, "seanet": seanet,
        "quantizer": quantizer, "transformer": transformer,
    }  # fmt: skip


def _contiguous(module: Any) -> dict[str, Any]:
    return {name: value.detach().clone().contiguous() for name, value in module.state_dict().items()}


def _tokenizer() -> bytes:
    import sentencepiece

    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_TEXT), model_writer=made, vocab_size=_MOST_PIECES, hard_vocab_limit=False,
        model_type="unigram", unk_id=0, bos_id=1, eos_id=2, pad_id=3, minloglevel=2,
    )  # fmt: skip
    return made.getvalue()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a tiny random checkpoint of Moshi's kind.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write(arguments.folder, arguments.seed)
