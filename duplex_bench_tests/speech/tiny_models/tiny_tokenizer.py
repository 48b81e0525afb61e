"""A byte-level Qwen2 tokenizer of a few hundred tokens; run by the foreign interpreter, never collected as a test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def write_tokenizer(
    folder: Path,
    specials: list[str],
    whole_words: tuple[str, ...] = ("assistant",),
    extra: dict[str, str] | None = None,
) -> Any:
    """Save a tokenizer in ``folder`` and return it; ``whole_words`` become one token each, as the prompts need."""
    from transformers import Qwen2TokenizerFast
    from transformers.models.gpt2.tokenization_gpt2 import bytes_to_unicode

    tokens = list(bytes_to_unicode().values())
    merges = []
    for word in whole_words:
        for length in range(2, len(word) + 1):
            pair = (word[: length - 1], word[length - 1])
            if pair not in merges:
                merges.append(pair)
                tokens.append(word[:length])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in merges))
    tokenizer = Qwen2TokenizerFast(
        vocab_file=str(folder / "vocab.json"),
        merges_file=str(folder / "merges.txt"),
        additional_special_tokens=specials,
        extra_special_tokens=extra or {},
    )
    tokenizer.save_pretrained(folder)
    return tokenizer
