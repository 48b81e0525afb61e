"""A tiny model of random weights with the interface of Voila's: real transformer and codec classes, heads of our own.

The vendor's code is in no package index. What this runs is the adapter: sequence, history, codec windows, timing.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

TINY = "tiny"
CODEBOOKS, CODEBOOK_SIZE = 4, 64
_MARKS = ("<SYSTEM>", "</SYSTEM>", "<stream_chat>", "<chat_audio_output>", "<au_chat_ref_start>", "<au_chat_ref>",
          "<au_chat_ref_end>", "<|HUMAN|>", "<|VOILA|>", "<au_token>", "<end>")  # fmt: skip
_FIRST_CODE = len(_MARKS) + 256
# Frames until the codec's memory says more about the sound than about its own beginning.
_SETTLE = 8


class Tokenizer:
    """Marks, bytes and codes."""

    eos_token_id = _MARKS.index("<end>")

    def convert_tokens_to_ids(self, token: str) -> int | None:
        """The id of a mark or code."""
        if token == "<|0|>":
            return _FIRST_CODE
        return _MARKS.index(token) if token in _MARKS else None

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Ids of a text with marks in it."""
        del add_special_tokens
        ids: list[int] = []
        while text:
            mark = next((one for one in _MARKS if text.startswith(one)), None)
            if mark is None:
                ids += [len(_MARKS) + byte for byte in text[0].encode()]
                text = text[1:]
            else:
                ids.append(_MARKS.index(mark))
                text = text[len(mark) :]
        return ids

    def decode(self, ids: list[int]) -> str:
        """The text of ids."""
        return bytes(one - len(_MARKS) for one in ids if 0 <= one - len(_MARKS) < 256).decode("utf-8", "replace")


def model() -> Any:
    """The model: random weights, the same in every process."""
    import torch
    from transformers import LlamaConfig, LlamaModel

    class Heads(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, hidden: int) -> None:
            super().__init__()
            self.books = torch.nn.ModuleList(torch.nn.Linear(hidden, CODEBOOK_SIZE) for _ in range(CODEBOOKS))

        def inference(self, hidden: Any, temperature: float, top_k: int) -> Any:
            drawn = []
            for book in self.books:
                logits = book(hidden)[0, -1] * 20 / max(temperature, 1e-6)
                kept = torch.topk(logits, min(top_k, CODEBOOK_SIZE))
                drawn.append(kept.indices[torch.multinomial(torch.softmax(kept.values, -1), 1)])
            return torch.stack(drawn, dim=-1)[None]

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            vocabulary = _FIRST_CODE + CODEBOOKS * CODEBOOK_SIZE
            self.config = LlamaConfig(
                vocab_size=vocabulary, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=4096,
            )  # fmt: skip
            self.config.num_codebooks, self.config.codebook_size = CODEBOOKS, CODEBOOK_SIZE
            self.model = LlamaModel(self.config)
            self.lm_head = torch.nn.Linear(64, vocabulary)
            self.voila_predictor = torch.nn.Linear(64, 2)
            self.ref_emb_linear = torch.nn.Linear(256, 64)
            self.audio_transformer = Heads(64)
            with torch.no_grad():
                # Untrained, it would write on and on.
                self.lm_head.bias[_MARKS.index("<au_token>")] += 1.75
                self.voila_predictor.bias[0] += 0.3

        @property
        def device(self) -> Any:
            return self.lm_head.weight.device

        def forward(self, input_ids: Any, past_key_values: Any, ref_embs: Any = None, **options: Any) -> Any:
            embedded = self.model.embed_tokens(input_ids).mean(dim=2)
            if ref_embs is not None:
                embedded[:, 4] += self.ref_emb_linear(ref_embs)[:, 0]
            options.pop("ref_embs_mask", None)
            made = self.model(inputs_embeds=embedded, past_key_values=past_key_values, **options)
            hidden = made.last_hidden_state
            return SimpleNamespace(
                last_hidden_state=hidden, logits=self.lm_head(hidden), voila_pred=self.voila_predictor(hidden)
            )

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return Model().eval()


def codec() -> Any:
    """The codec: the class of Voila's own, small and random, looking only back."""
    import torch
    from transformers import EncodecConfig, EncodecModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(6)
        config = EncodecConfig(
            target_bandwidths=[1.1], sampling_rate=16_000, upsampling_ratios=[8, 5, 4, 4], num_filters=4,
            hidden_size=32, codebook_dim=32, codebook_size=CODEBOOK_SIZE, num_lstm_layers=1, use_causal_conv=True,
        )  # fmt: skip
        made = EncodecModel(config).eval()
        # Untrained, it codes all sound alike: its codes are taken from what its encoder makes of noise.
        with torch.no_grad():
            for layer in made.quantizer.layers:
                frames = CODEBOOK_SIZE + _SETTLE
                noise = torch.randn(1, 1, 640 * frames) * torch.rand(frames).repeat_interleave(640) / 2
                rest = made.encoder(noise)[:, :, _SETTLE:]
                for before in made.quantizer.layers:
                    if before is layer:
                        break
                    rest = rest - before.decode(before.encode(rest))
                layer.codebook.embed.copy_(rest[0].T)
        return made
