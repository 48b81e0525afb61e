"""The once-a-second decision behind the servers of MiniCPM-o 4.5: listen, or speak a second of a turn to its end.

After the vendor's model (docs/systems/minicpm-o.md): it does not stop in the middle of its own turn, unless the client
forces it to listen.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

import numpy as np

from duplex_bench.rollout.pacing import wait_until
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters.minicpm_session import IN_RATE_HZ, OUT_RATE_HZ
from duplex_bench.systems.serving.model_conversation import ModelConversation
from duplex_bench.systems.serving.peers import Peer
from duplex_bench.systems.serving.speaking import Setting

# Tokens of a unit: markers, ten of audio, and up to twenty of words.
LISTENING_TOKENS: Final = 13
SPEAKING_TOKENS: Final = 33
CONTEXT_TOKENS: Final = 8192


@dataclass(frozen=True, slots=True)
class Unit:
    """What the model did in one second; ``reply`` numbers its turns, 0 while it listens."""

    number: int
    reply: int
    text: str
    audio: Samples
    over: bool

    @property
    def listens(self) -> bool:
        """Whether the model listened."""
        return self.reply == 0


class MiniCpmConversation(ModelConversation):
    """Base of the three protocols' conversations. ``cache_tokens`` is the model's memory in use."""

    def __init__(self, peer: Peer, setting: Setting, target: str) -> None:
        super().__init__(peer, setting, target, IN_RATE_HZ)
        self.cache_tokens = 0
        self._units = 0

    async def wait_in_queue(self) -> None:
        """Let the time of a slow start pass."""
        if self.faults.start_delay_s:
            await wait_until(asyncio.get_running_loop().time() + self.faults.start_delay_s)

    def prompted(self, instructions: str) -> None:
        """The model is told who it is."""
        self.instructions = instructions
        self.cache_tokens = len(instructions.split()) + 60

    def unit(self, second: Samples, *, force_listen: bool = False) -> Unit:
        """Hear one second (16000,) and decide."""
        self.talker.hear(second)
        number, self._units = self._units, self._units + 1
        reply = self.talker.reply
        if force_listen or (reply is not None and reply.over):
            self.talker.stop()
            reply = None
        if reply is None and not force_listen:
            reply = self.talker.begin()
        if reply is None:
            self.cache_tokens += LISTENING_TOKENS
            return Unit(number, 0, "", np.zeros(0, dtype=np.float32), over=False)
        self.cache_tokens += SPEAKING_TOKENS
        audio = reply.take(OUT_RATE_HZ)
        return Unit(number, reply.number, reply.words(), audio, reply.over)

    @property
    def is_full(self) -> bool:
        """Whether the model's memory is used up."""
        return self.cache_tokens >= CONTEXT_TOKENS
