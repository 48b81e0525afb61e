"""One conversation of an FLM-Audio server: a frame out for each frame in but the first, words beside them.

After the vendor's server (docs/systems/flm-audio.md). The vendor's model mostly speaks on when it is spoken over; the
voice behind this one stops.
"""

import asyncio
from typing import Final

import numpy as np

from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters.ogg_opus import OggOpusReader, OggOpusWriter
from duplex_bench.systems.adapters.opus_chat import AUDIO, HANDSHAKE, TEXT
from duplex_bench.systems.serving.model_conversation import ModelConversation
from duplex_bench.systems.serving.peers import CloseConnection, Peer
from duplex_bench.systems.serving.speaking import Setting

RATE_HZ: Final = 24_000
FRAME: Final = 1920


class FlmConversation(ModelConversation):
    """See the module.

    Args:
        peer: The client.
        setting: Voice, desk, manner and faults.
        target: Path and query.
        turn: Held while a conversation lasts: the server serves one at a time, others wait without a word.
    """

    # Ends a run of words; empty for relatives that have no such mark. Frames of which nothing comes back.
    end_of_words = b"\n"
    lost_frames = 1

    def __init__(self, peer: Peer, setting: Setting, target: str, turn: asyncio.Lock) -> None:
        super().__init__(peer, setting, target, RATE_HZ)
        self._turn = turn
        self._reader = OggOpusReader(RATE_HZ)
        self._writer = OggOpusWriter(RATE_HZ)
        self._rest = np.zeros(0, dtype=np.float32)
        self._frames = 0
        self._owed = 0.0

    async def serve(self) -> None:
        """Wait for the turn, say so, then answer frame by frame."""
        async with self._turn:
            await self.prepare()
            await self.send(bytes([HANDSHAKE]))
            await self.moment("created")
            while True:
                message = await self.peer.receive()
                # Other kinds, text and empty messages are passed over.
                if isinstance(message, bytes) and message[:1] == bytes([AUDIO]):
                    self._rest = np.concatenate([self._rest, self._heard(message[1:])])
                while len(self._rest) >= FRAME:
                    frame, self._rest = self._rest[:FRAME], self._rest[FRAME:]
                    await self._step(frame)

    async def prepare(self) -> None:
        """What comes between the turn and the handshake; here nothing."""

    async def _step(self, frame: Samples) -> None:
        if self.talker.hear(frame) and self.talker.reply is not None:
            self.talker.stop()
            await self._end_words()
        self._frames += 1
        # The first step of the model returns nothing.
        if self._frames <= self.lost_frames or self._falls_behind():
            return
        said = self.talker.say_next(FRAME)
        reply = self.talker.reply
        if reply is not None:
            await self.moment("committed")
        audio = self._writer.append(said)
        await self.send(bytes([AUDIO]) + (audio[: len(audio) // 2] if self.faults.odd_lengths else audio))
        if self.faults.odd_lengths:
            await self.send(bytes([AUDIO]) + audio[len(audio) // 2 :])
        if reply is None:
            return
        words = reply.words()
        if words:
            await self.send(bytes([TEXT]) + f" {words.lstrip()}".encode())
        if reply.over:
            await self._end_words()
        if reply.taken > 2 * FRAME:
            await self.moment("audio")

    async def _end_words(self) -> None:
        if self.end_of_words:
            await self.send(bytes([TEXT]) + self.end_of_words)

    def _falls_behind(self) -> bool:
        """Whether this frame is one that a server slower than real time has not got to."""
        self._owed += self.faults.slow_share
        if self._owed < 1.0:
            return False
        self._owed -= 1.0
        return True

    def _heard(self, payload: bytes) -> Samples:
        try:
            return self._reader.append(payload)
        except ConnectionError:
            # The vendor's server dies on it, and its socket with it.
            raise CloseConnection(0) from None

    def garbage(self) -> bytes:
        """Audio that is no Ogg stream."""
        return bytes([AUDIO]) + b"<html>502 Bad Gateway</html>"

    def filler(self) -> bytes:
        """A kind of message that the protocol names and the server does not use: a ping."""
        return bytes([6])
