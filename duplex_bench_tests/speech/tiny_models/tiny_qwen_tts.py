"""Writes a random Qwen3-TTS checkpoint of a megabyte: ``python tiny_qwen_tts.py FOLDER custom_voice|base``.

Run by the interpreter that has qwen-tts. The vendor's own classes, configuration format and weight files; only the
sizes are small. Codebooks are filled with noise, since they start at zero and the waveform would be exactly silent.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from qwen_tts.core.models import Qwen3TTSConfig, Qwen3TTSForConditionalGeneration
from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Config
from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Model
from tiny_tokenizer import write_tokenizer
from transformers import EncodecFeatureExtractor

SPECIALS = ["<|im_start|>", "<|im_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>"]
SPEAKERS = ("ryan", "aiden", "serena", "vivian", "ono_anna")
N_CODES = 64
HIDDEN = 32
ROPE = {"rope_type": "default", "mrope_section": [4, 2, 2], "interleaved": True}


def write_codec(folder: Path) -> None:
    config = Qwen3TTSTokenizerV2Config(
        encoder_config={
            "hidden_size": HIDDEN,
            "num_filters": 4,
            "codebook_size": N_CODES,
            "codebook_dim": 16,
            "vector_quantization_hidden_dimension": 16,
            "num_quantizers": 16,
            "upsample_groups": HIDDEN,
            "num_hidden_layers": 1,
            "intermediate_size": 32,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "frame_rate": 12.5,
        },
        decoder_config={
            "codebook_size": N_CODES,
            "codebook_dim": HIDDEN,
            "hidden_size": HIDDEN,
            "latent_dim": HIDDEN,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "decoder_dim": 64,
        },
    )
    model = Qwen3TTSTokenizerV2Model(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embedding_sum" in name:
                parameter.normal_()
            elif name.startswith("decoder.") and parameter.dim() > 1:
                # The usual small weights shrink a signal to 1e-7 through so many layers.
                parameter.normal_(0.0, parameter[0].numel() ** -0.5)
                if parameter.shape[0] == 1:
                    # The last layer, to one channel: below full scale.
                    parameter.mul_(0.02)
        for name, buffer in model.named_buffers():
            if "embed_sum" in name:
                buffer.normal_()
    model.save_pretrained(folder)
    EncodecFeatureExtractor(feature_size=1, sampling_rate=24000).save_pretrained(folder)


def write_model(folder: Path, model_type: str) -> None:
    tokenizer = write_tokenizer(folder, SPECIALS)
    ids = dict(zip(SPECIALS, tokenizer.convert_tokens_to_ids(SPECIALS), strict=True))
    n_text = len(tokenizer)
    vocab = N_CODES + 1024
    layer = {
        "hidden_size": HIDDEN,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "num_code_groups": 16,
    }
    config = Qwen3TTSConfig(
        talker_config={
            **layer,
            "code_predictor_config": {**layer, "vocab_size": N_CODES},
            "vocab_size": vocab,
            "text_vocab_size": n_text,
            "text_hidden_size": HIDDEN,
            "rope_scaling": dict(ROPE),
            "codec_eos_token_id": vocab - 1,
            "codec_think_id": vocab - 2,
            "codec_nothink_id": vocab - 3,
            "codec_think_bos_id": vocab - 4,
            "codec_think_eos_id": vocab - 5,
            "codec_pad_id": vocab - 6,
            "codec_bos_id": vocab - 7,
            "codec_language_id": {"english": vocab - 8},
            "spk_id": {name: vocab - 20 - number for number, name in enumerate(SPEAKERS)},
            "spk_is_dialect": dict.fromkeys(SPEAKERS, False),
        },
        speaker_encoder_config={
            "enc_dim": HIDDEN,
            "enc_channels": [16, 16, 16, 16, 48],
            "enc_attention_channels": 8,
            "enc_res2net_scale": 2,
            "enc_se_channels": 8,
        },
        tokenizer_type="qwen3_tts_tokenizer_12hz",
        tts_model_size="0b6",
        tts_model_type=model_type,
        im_start_token_id=ids["<|im_start|>"],
        im_end_token_id=ids["<|im_end|>"],
        tts_pad_token_id=ids["<tts_pad>"],
        tts_bos_token_id=ids["<tts_text_bos>"],
        tts_eos_token_id=ids["<tts_text_eod>"],
    )
    Qwen3TTSForConditionalGeneration(config).eval().save_pretrained(folder)
    config_file = folder / "config.json"
    saved = json.loads(config_file.read_text())
    # The vendor's class refuses what transformers adds when it saves; released files have only its own keys.
    saved["speaker_encoder_config"] = {
        key: value
        for key, value in saved["speaker_encoder_config"].items()
        if key.startswith("enc_") or key in ("mel_dim", "sample_rate")
    }
    config_file.write_text(json.dumps(saved))
    # After the weights: saving a model writes a generation_config.json of its own.
    (folder / "generation_config.json").write_text(json.dumps({"do_sample": True, "top_k": 50, "temperature": 0.9}))


if __name__ == "__main__":
    torch.manual_seed(7)
    target = Path(sys.argv[1])
    write_model(target, sys.argv[2])
    write_codec(target / "speech_tokenizer")
