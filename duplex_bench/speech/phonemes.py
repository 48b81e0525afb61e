"""Text to phonemes by hibari's letters-to-sound, and its alphabet in IPA (joe) and ARPAbet (PocketSphinx)."""

import re
from functools import cache
from typing import Any

from duplex_bench.speech.model_catalogue import verified_model

STRESS_MARKS = "ˈˌ"
# What hibari writes as one letter and espeak, which joe was trained on, as several; lengths are put back.
_TO_IPA = {
    "A": "eɪ", "I": "aɪ", "O": "oʊ", "Q": "əʊ", "W": "aʊ", "Y": "ɔɪ", "ʤ": "dʒ", "ʧ": "tʃ", "ᵊ": "ə", "T": "ɾ",
    "i": "iː", "u": "uː", "ɑ": "ɑː", "ɔ": "ɔː", "ɜ": "ɜː",
}  # fmt: skip
_TO_ARPABET = {
    "A": "EY", "I": "AY", "O": "OW", "Q": "OW", "W": "AW", "Y": "OY", "ʤ": "JH", "ʧ": "CH", "ᵊ": "AH", "T": "T",
    "i": "IY", "u": "UW", "ɑ": "AA", "ɒ": "AA", "a": "AA", "ɔ": "AO", "ɜ": "ER", "ɚ": "ER", "ə": "AH", "ɐ": "AH",
    "ʌ": "AH", "ɛ": "EH", "e": "EH", "ɪ": "IH", "ᵻ": "IH", "ʊ": "UH", "æ": "AE", "o": "OW", "b": "B", "d": "D",
    "f": "F", "ɡ": "G", "h": "HH", "j": "Y", "k": "K", "l": "L", "m": "M", "n": "N", "ŋ": "NG", "p": "P", "ɹ": "R",
    "r": "R", "s": "S", "ʃ": "SH", "t": "T", "ɾ": "T", "θ": "TH", "ð": "DH", "v": "V", "w": "W", "z": "Z",
    "ʒ": "ZH", "ʔ": "T", "x": "K",
}  # fmt: skip


@cache
def letters_to_sound() -> Any:
    """The American English G2P, its files verified; one per process."""
    verified_model("hibari")
    from hibari.g2p import G2P

    return G2P()


def to_ipa(phonemes: str) -> str:
    """The phonemes as the IPA that joe was trained on.

    Unstressed final "i" stays short and r-coloured schwa is one letter, as espeak writes them.
    """
    phonemes = re.sub("əɹ(?![AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻˈˌ])", "ɚ", phonemes)
    phonemes = phonemes.replace("ɜɹ", "ɜ")
    short_i = re.sub(r"(?<![ˈˌ])i(?![^\s.,!?;:])", "\0", phonemes)
    return "".join(_TO_IPA.get(letter, letter) for letter in short_i).replace("\0", "i")


def to_arpabet(phonemes: str) -> tuple[str, ...]:
    """The phonemes as ARPAbet without stress; what has no counterpart (punctuation, stress) is left out."""
    joined = phonemes.replace("ɜɹ", "ɜ").replace("əɹ", "ɚ")
    return tuple(_TO_ARPABET[letter] for letter in joined if letter in _TO_ARPABET)
