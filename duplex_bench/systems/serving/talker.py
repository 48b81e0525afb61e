"""What stands behind the servers of full-duplex models: hears audio as it comes, and has replies ready to be taken.

The models' protocols differ in when speech goes out (a frame for a frame, a block a second, pieces on request): each
conversation takes from here at its own pace. What is said and heard is a ``Voice``'s, by default the embedded cascade.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from duplex_bench.rollout.pacing import wait_until
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters.cascade.endpointers import SilenceEndpointer
from duplex_bench.systems.serving.beside import Beside
from duplex_bench.systems.serving.ears import Ears
from duplex_bench.systems.serving.speaking import JOIN_MS, Setting
from duplex_bench.systems.serving.voices import RATE_HZ

# As the embedded cascade: a turn ends after so much silence (ours).
SILENCE_S: Final = 0.5


@dataclass
class Reply:
    """A reply with what of it was taken; audio float32 (n,) at 24 kHz, empty if the server has no voice."""

    number: int
    text: str
    audio: Samples
    taken: int = 0
    told: int = 0

    @property
    def over(self) -> bool:
        """Whether all of it was taken."""
        return self.taken >= len(self.audio)

    def take(self, samples: int) -> Samples:
        """The next samples of it, fewer at its end."""
        piece = self.audio[self.taken : self.taken + samples]
        self.taken += len(piece)
        return piece

    def words(self) -> str:
        """The words that belong to what was taken since this was last asked, by their share of the audio.

        All but the first begin with a space, as pieces of a text do.
        """
        words = self.text.split(" ")
        until = len(words) if self.over else round(len(words) * self.taken / len(self.audio))
        piece = " " * (0 < self.told < until) + " ".join(words[self.told : until])
        self.told = max(self.told, until)
        return piece


class Talker:
    """Ears, a rule and a voice behind a conversation.

    Args:
        setting: Voice, desk, manner and faults of the server.
        rate_hz: Rate of the audio that is heard.
        silence_s: Silence that ends a turn.
    """

    def __init__(self, setting: Setting, rate_hz: int, silence_s: float = SILENCE_S) -> None:
        import soxr

        self._setting = setting
        self._ears = Ears(RATE_HZ, SilenceEndpointer(silence_s))
        self._to_ears: Any = None if rate_hz == RATE_HZ else soxr.ResampleStream(rate_hz, RATE_HZ, 1, dtype="float32")
        self._replies = 0
        self._answering = 0
        self._turn = 0
        self._turn_ms: tuple[int, int] | None = None
        self._onset_ms = 0
        self._beside = Beside()
        self.failure = self._beside.failure
        self._words: dict[int, str] = {}
        self.reply: Reply | None = None
        self.next: Reply | None = None

    @property
    def speaking(self) -> bool:
        """Whether someone is heard speaking."""
        return self._ears.speaking

    @property
    def heard(self) -> list[str]:
        """Words of every turn, oldest first."""
        return [self._words[turn] for turn in sorted(self._words)]

    def hear(self, samples: Samples) -> bool:
        """Take audio float32 (n,) at the rate; whether someone began to speak in it."""
        if self._to_ears is not None:
            samples = np.asarray(self._to_ears.resample_chunk(samples), dtype=np.float32)
        began = False
        for edge in self._ears.hear(samples):
            if edge.kind == "started":
                began = True
                self._onset_ms = edge.sound_ms
                # Who goes on speaking has not ended the turn that is being thought about.
                self._answering += 1
                self.next = None
            else:
                self._turn_ended(edge.sound_ms, edge.now_ms)
        return began

    def begin(self) -> Reply | None:
        """The reply that is ready and was not begun, which is then the one under way; None if there is none."""
        if self.next is None:
            return None
        self.reply, self.next, self._turn_ms = self.next, None, None
        return self.reply

    def stop(self) -> None:
        """Say no more of the reply under way."""
        self.reply = None

    def say_next(self, samples: int) -> Samples:
        """The next samples of the reply under way, else of the one that is ready; silence where there is none."""
        if self.reply is None or self.reply.over:
            self.reply = None
            self.begin()
        piece = np.zeros(samples, dtype=np.float32)
        if self.reply is not None:
            said = self.reply.take(samples)
            piece[: len(said)] = said
        return piece

    async def close(self) -> None:
        """End what is being thought about."""
        await self._beside.end()

    def _turn_ended(self, sound_ms: int, now_ms: int) -> None:
        start_ms = self._onset_ms
        if self._turn_ms is not None and start_ms - self._turn_ms[1] < JOIN_MS:
            # To a listener these are one turn: nothing was said between them.
            start_ms = self._turn_ms[0]
        else:
            self._turn += 1
        self._turn_ms = (start_ms, sound_ms)
        self._answering += 1
        self._beside.spawn(self._answer(self._answering, self._turn, self._ears.between(start_ms - 120, now_ms)))

    async def _answer(self, number: int, turn: int, sound: Samples) -> None:
        setting = self._setting
        loop = asyncio.get_running_loop()
        due_s = loop.time() + setting.manner.think_s
        words = await setting.desk.do(setting.voice.hear, sound)
        earlier = [self._words[other] for other in sorted(self._words) if other < turn]
        self._words[turn] = words
        text = setting.voice.reply(earlier, words)
        if text is None or number != self._answering:
            return
        audio = np.zeros(0, np.float32) if setting.faults.no_audio else await setting.desk.do(setting.voice.speak, text)
        await wait_until(due_s)
        if number == self._answering:
            self._replies += 1
            self.next = Reply(self._replies, text, audio)
