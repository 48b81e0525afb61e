"""Voila's sequence, one position at a time: four ids of the user and four of the model, or one id on all eight.

After the vendor's generation (docs/systems/voila.md): the model writes words and marks at positions of their own, which
take no time, until it writes the audio token; then its frame is sampled, and only then the user's frame is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

PROMPT = "<SYSTEM><stream_chat><chat_audio_output><au_chat_ref_start><au_chat_ref><au_chat_ref_end></SYSTEM>"
HUMAN = "<|HUMAN|>"
VOILA = "<|VOILA|>"
AUDIO = "<au_token>"
FIRST_CODE = "<|0|>"


@dataclass(frozen=True)
class Ids:
    """The ids that matter."""

    audio: int
    first_code: int
    voila: int
    human: int
    end: int

    @classmethod
    def of(cls, tokenizer: Any) -> Ids:
        """Those of a tokenizer; raises ValueError if it is none of Voila's."""
        names = (AUDIO, FIRST_CODE, VOILA, HUMAN)
        found = [*(tokenizer.convert_tokens_to_ids(name) for name in names), tokenizer.eos_token_id]
        if not all(isinstance(one, int) for one in found):
            raise ValueError(f"this tokenizer lacks one of {', '.join(names)}: it is not Voila's")
        return cls(*found)


@dataclass(frozen=True)
class Sampling:
    """The vendor's own defaults. A ``top_k`` of 1 takes the likeliest each time."""

    temperature: float = 0.2
    top_k: int = 50
    audio_temperature: float = 0.8
    audio_top_k: int = 50


class Sequence:
    """A conversation's positions.

    Args:
        model: ``VoilaAutonomousModel``, or what has its interface.
        ids: Of its tokenizer.
        sampling: How tokens are drawn, from torch's global generator.
        most_words: Positions that may come before a frame of audio.
    """

    def __init__(self, model: Any, ids: Ids, sampling: Sampling, most_words: int) -> None:
        import torch
        from transformers import DynamicCache

        self._torch, self._model, self._ids, self._sampling = torch, model, ids, sampling
        self._most_words = most_words
        self._cache = DynamicCache()
        self._last: Any = None
        self._n_codebooks = int(model.config.num_codebooks)
        self._codebook_size = int(model.config.codebook_size)
        self.speaking = False
        self.positions = 0

    def begin(self, positions: list[list[int]], speaker: Any) -> None:
        """Feed the prompt and whatever comes before the stream; ``speaker`` (1, 1, 256) lends the voice."""
        mask = self._torch.ones(1, device=speaker.device)
        self._feed(positions, ref_embs=speaker, ref_embs_mask=mask)

    def same(self, token: int) -> list[int]:
        """A position of one id on all rows."""
        return [token] * (2 * self._n_codebooks)

    def frames(self, user: Iterable[int], own: Iterable[int]) -> list[int]:
        """A position of two frames of codes."""
        return [*self._as_ids(user), *self._as_ids(own)]

    def next_frame(self) -> tuple[list[int], list[int]]:
        """The tokens written before the model's next frame, and the codes of that frame.

        Raises:
            RuntimeError: No frame comes.
        """
        words: list[int] = []
        while True:
            token = self._token()
            if token == self._ids.audio:
                return words, self._codes()
            words.append(token)
            if len(words) > self._most_words:
                raise RuntimeError(f"the model wrote {len(words)} tokens and no audio: these weights are not usable")
            self._feed([self.same(token)])

    def hear(self, user: Iterable[int], own: Iterable[int]) -> None:
        """Go on with the user's frame beside the model's."""
        self._feed([self.frames(user, own)])

    def _as_ids(self, codes: Iterable[int]) -> list[int]:
        return [self._ids.first_code + code + book * self._codebook_size for book, code in enumerate(codes)]

    def _feed(self, positions: list[list[int]], **speaker: Any) -> None:
        torch = self._torch
        ids = torch.tensor([positions], dtype=torch.long, device=self._model.device)
        with torch.no_grad():
            self._last = self._model(
                input_ids=ids, past_key_values=self._cache, use_cache=True, return_dict=True, **speaker
            )
        self.positions += len(positions)

    def _token(self) -> int:
        torch, sampling = self._torch, self._sampling
        logits = self._last.logits[0, -1].float()
        if sampling.temperature > 0:
            logits = logits / sampling.temperature
        if sampling.top_k > 0:
            least = torch.topk(logits, min(sampling.top_k, len(logits))).values[-1]
            logits = logits.masked_fill(logits < least, float("-inf"))
        token = int(torch.multinomial(torch.softmax(logits, dim=-1), num_samples=1))
        takes_floor = int(torch.argmax(self._last.voila_pred[0, -1])) == 1
        if takes_floor and not self.speaking:
            self.speaking = True
            return self._ids.voila
        if token == self._ids.end:
            self.speaking = False
        return token

    def _codes(self) -> list[int]:
        with self._torch.no_grad():
            drawn = self._model.audio_transformer.inference(
                self._last.last_hidden_state[:, -1:],
                temperature=self._sampling.audio_temperature,
                top_k=self._sampling.audio_top_k,
            )
        return [int(code) for code in drawn.reshape(-1)[-self._n_codebooks :]]
