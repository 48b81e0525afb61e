"""Writes random Qwen3-ASR and Qwen3-ForcedAligner checkpoints: ``python tiny_qwen_asr.py ASR_FOLDER ALIGNER_FOLDER``.

Run by the interpreter that has qwen-asr. The vendor's own classes, configuration format and weight files; only the
sizes are small.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from qwen_asr.core.transformers_backend import Qwen3ASRConfig, Qwen3ASRForConditionalGeneration, Qwen3ASRProcessor
from tiny_tokenizer import write_tokenizer
from transformers import WhisperFeatureExtractor

AUDIO = {
    "audio_token": "<|audio_pad|>",
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
}
SPECIALS = ["<|im_start|>", "<|im_end|>", "<timestamp>", *AUDIO.values()]
HIDDEN = 32
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}<|audio_start|><|audio_pad|><|audio_end|>{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# 80 ms a class, as in the released aligner; classes for 24 s.
SEGMENT_MS, N_CLASSES = 80, 300


def write(folder: Path, *, aligner: bool) -> None:
    tokenizer = write_tokenizer(folder, SPECIALS, extra=AUDIO)
    extractor = WhisperFeatureExtractor(feature_size=128, return_attention_mask=True)
    Qwen3ASRProcessor(extractor, tokenizer, chat_template=TEMPLATE).save_pretrained(folder)
    thinker: dict[str, Any] = {
        "audio_config": {
            "encoder_layers": 1,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "d_model": HIDDEN,
            "output_dim": HIDDEN,
            "downsample_hidden_size": 8,
            "n_window": 50,
            "n_window_infer": 200,
        },
        "text_config": {
            "vocab_size": len(tokenizer),
            "hidden_size": HIDDEN,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2], "interleaved": True},
        },
        "audio_token_id": tokenizer.convert_tokens_to_ids("<|audio_pad|>"),
        "audio_start_token_id": tokenizer.convert_tokens_to_ids("<|audio_start|>"),
        "pad_token_id": tokenizer.convert_tokens_to_ids("<|im_end|>"),
        "initializer_range": 0.5,
    }
    more: dict[str, Any] = {}
    if aligner:
        thinker |= {"model_type": "qwen3_forced_aligner", "classify_num": N_CLASSES}
        more = {
            "timestamp_token_id": tokenizer.convert_tokens_to_ids("<timestamp>"),
            "timestamp_segment_time": SEGMENT_MS,
        }
    config = Qwen3ASRConfig(thinker_config=thinker, support_languages=["English"], **more)
    model = Qwen3ASRForConditionalGeneration(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.3)
    model.save_pretrained(folder)
    if aligner:
        # Saving writes the class's name over the one that makes a model an aligner.
        config_file = folder / "config.json"
        saved = json.loads(config_file.read_text())
        saved["thinker_config"]["model_type"] = thinker["model_type"]
        config_file.write_text(json.dumps(saved))


if __name__ == "__main__":
    torch.manual_seed(7)
    write(Path(sys.argv[1]), aligner=False)
    write(Path(sys.argv[2]), aligner=True)
