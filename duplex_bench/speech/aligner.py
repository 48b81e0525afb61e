"""Word times by forced alignment: PocketSphinx finds when the recognised words were said.

Source: pocketsphinx 5.1.1 (BSD-2-Clause) with its en-us model. Each word is given to it by its sound, from
hibari's letters-to-sound, so that names, digits and slips of the recogniser align as well. A new decoder is made
for each call: a used one carries adaptation, and results would depend on the order of work.
"""

from typing import Any, NamedTuple

import numpy as np

from duplex_bench.audio.mixing import Mono
from duplex_bench.speech.model_catalogue import model_id, verified_model
from duplex_bench.speech.phonemes import letters_to_sound, to_arpabet
from duplex_bench.storage.blobs import to_pcm16

SAMPLE_RATE_HZ = 16000
FRAME_S = 0.01


class AlignedWord(NamedTuple):
    """Onset and end in seconds from the start of the audio, to 10 ms."""

    start_s: float
    end_s: float


class ForcedAligner:
    """Aligns known words with the audio they were spoken in."""

    def __init__(self) -> None:
        self._files = verified_model("pocketsphinx")

    @property
    def engine_id(self) -> str:
        """Package, version and dictionary hash."""
        return model_id("pocketsphinx")

    def align(self, samples: Mono, words: list[str]) -> list[AlignedWord] | None:
        """Times of ``words`` in order, or None where they do not fit the audio.

        Args:
            samples: float32 (n,) at 16 kHz, one speaker.
            words: as recognised, at least one letter or digit each.
        """
        from pocketsphinx import Decoder

        decoder = Decoder(
            hmm=str(self._files["mdef"].parent),
            dict=str(self._files["cmudict-en-us.dict"]),
            lm=None,
            bestpath=False,
            samprate=SAMPLE_RATE_HZ,
            loglevel="FATAL",
        )
        names = [_entry(decoder, word, number) for number, word in enumerate(words)]
        if not names or None in names:
            return None
        decoder.set_align_text(" ".join(name for name in names if name))
        decoder.start_utt()
        decoder.process_raw(to_pcm16(samples).tobytes(), full_utt=True)
        decoder.end_utt()
        found = [segment for segment in decoder.seg() or () if _base(segment.word) in set(names)]
        if [_base(segment.word) for segment in found] != names:
            return None
        return [AlignedWord(segment.start_frame * FRAME_S, (segment.end_frame + 1) * FRAME_S) for segment in found]


def spoken_form(word: str) -> str:
    """A recognised word as the dictionary writes it: lower case, apostrophes kept, other marks dropped."""
    return "".join(letter for letter in word.lower().replace("’", "'") if letter.isalnum() or letter == "'").strip("'")


def _entry(decoder: Any, word: str, number: int) -> str | None:
    """The dictionary entry to align ``word`` by, added by its sound where the dictionary has none."""
    plain = spoken_form(word)
    if plain.isascii() and decoder.lookup_word(plain) is not None:
        return plain
    phones = to_arpabet(letters_to_sound()(word))
    if not phones:
        return None
    name = f"word{number}"
    decoder.add_word(name, " ".join(phones), True)
    return name


def _base(entry: str) -> str:
    """An entry without the number of its variant: "read(2)" is "read"."""
    return entry.partition("(")[0]


def peak_normalised(samples: Mono) -> Mono:
    """``samples`` with their peak at 0.5, so that quiet audio keeps its resolution in 16 bits."""
    peak = float(np.abs(samples).max(initial=0.0))
    return (samples * (0.5 / peak)).astype(np.float32) if peak > 0 else samples
