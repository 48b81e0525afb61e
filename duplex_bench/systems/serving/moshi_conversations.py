"""Conversations of the servers of Moshi and PersonaPlex: FLM-Audio's manner, and what differs.

After the vendors' servers (docs/systems/moshi.md, docs/systems/personaplex.md).
"""

import asyncio
import contextlib
from typing import Final

from duplex_bench.rollout.pacing import wait_until
from duplex_bench.systems.serving.flm_conversation import FlmConversation
from duplex_bench.systems.serving.peers import CloseConnection

VOICES: Final = tuple(
    f"{kind}{number}.pt" for kind, n in (("NATF", 4), ("NATM", 4), ("VARF", 5), ("VARM", 5)) for number in range(n)
)
FRAME_S: Final = 0.08
# Twice half a second of silence, and a voice prompt of some seconds (ours): frames that are stepped before a session.
_PROMPT_FRAMES: Final = 2 * 6 + 50
# A model steps prompts faster than they would be heard (ours).
_STEPS_PER_FRAME_TIME: Final = 10


class MoshiConversation(FlmConversation):
    """Moshi's own server: it knows no prompt, ignores the query, and marks no end of words."""

    end_of_words = b""


class PersonaPlexConversation(FlmConversation):
    """PersonaPlex's server: prompts in the query, stepped before the handshake; a frame comes back for each frame.

    What is missing or unknown in the query raises in the vendor's handler: the socket dies after the upgrade, and no
    message says why. Whatever is sent before the handshake is thrown away.
    """

    end_of_words = b""
    lost_frames = 0

    async def prepare(self) -> None:
        """Check the query, then step the prompts while what comes in is thrown away."""
        text, voice = (self.query.get(name, [""])[0] for name in ("text_prompt", "voice_prompt"))
        # The vendor looks a seed up in the wrong place and raises.
        if not text or voice not in VOICES or "seed" in self.query:
            raise CloseConnection(0)
        self.instructions = text
        frames = _PROMPT_FRAMES + len(text.split())
        loop = asyncio.get_running_loop()
        until_s = loop.time() + frames * FRAME_S / _STEPS_PER_FRAME_TIME
        thrown_away = loop.create_task(self._throw_away())
        try:
            await wait_until(until_s)
        finally:
            thrown_away.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await thrown_away

    async def _throw_away(self) -> None:
        while True:
            await self.peer.receive()
