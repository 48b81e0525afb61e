"""One conversation of the older MiniCPM-o demo: a gateway's queue, then a result for every second."""

import json
from typing import Any, Final

import numpy as np

from duplex_bench.systems.adapters.minicpm_demo import WORKER_PATH
from duplex_bench.systems.adapters.minicpm_session import IN_RATE_HZ, OUT_RATE_HZ
from duplex_bench.systems.adapters.reference_audio import as_floats, from_floats
from duplex_bench.systems.serving.minicpm_units import MiniCpmConversation, Unit
from duplex_bench.systems.serving.peers import CloseConnection

BUSY: Final = 1013


class MiniCpmDemoConversation(MiniCpmConversation):
    """See the module."""

    async def start(self) -> None:
        """A gateway queues, a worker does not."""
        if self.path.endswith(WORKER_PATH):
            await self.wait_in_queue()
            return
        if self.faults.busy:
            await self._error("No worker available")
            raise CloseConnection(BUSY, "No worker available")
        if self.faults.start_delay_s:
            wait_s = self.faults.start_delay_s
            await self.send_json({"type": "queued", "position": 1, "estimated_wait_s": wait_s, "queue_length": 1})
            await self.wait_in_queue()
        await self.send_json({"type": "queue_done"})

    async def serve(self) -> None:
        """Prepared once, then a result for each second."""
        prepared = False
        while True:
            message = self._message(await self.peer.receive())
            kind = message.get("type")
            if kind == "prepare":
                prepared = True
                self.prompted(str(message.get("system_prompt") or ""))
                await self.send_json({"type": "prepared", "prompt_length": self.cache_tokens})
                await self.moment("created")
            elif kind == "audio_chunk" and prepared:
                await self._second(message)
            elif kind == "stop":
                await self.send_json({"type": "stopped"})
                raise CloseConnection(1000)
            elif kind in ("pause", "resume"):
                await self.send_json({"type": f"{kind}d"})
            else:
                await self._error(f"{kind!r} is not known or comes before prepare")

    async def ended(self) -> None:
        """A session that was paused too long."""
        await self.send_json({"type": "timeout"})
        raise CloseConnection(1000, "timeout")

    async def _second(self, message: dict[str, Any]) -> None:
        second = from_floats(message.get("audio_base64"))
        if second is None or len(second) != IN_RATE_HZ:
            await self._error("audio_base64 is not one second of float32 at 16 kHz")
            return
        unit = self.unit(second, force_listen=bool(message.get("force_listen")))
        if not unit.listens:
            await self.moment("committed")
        await self.send_json(self._result(unit))
        if not unit.listens:
            await self.moment("audio")

    def _result(self, unit: Unit) -> dict[str, Any]:
        audio = np.zeros(OUT_RATE_HZ, dtype=np.float32) if unit.listens else unit.audio
        data = as_floats(audio)
        if self.faults.odd_lengths and not unit.listens:
            data = data[: len(data) // 2 // 4 * 4 - 4] + "AAA="
        return {
            "type": "result", "is_listen": unit.listens, "text": unit.text, "audio_data": data,
            "end_of_turn": unit.over, "current_time": unit.number, "kv_cache_length": self.cache_tokens,
            "cost_all_ms": 0.0,
        }  # fmt: skip

    async def _error(self, told: str) -> None:
        await self.send_json({"type": "error", "error": told})

    @staticmethod
    def _message(raw: str | bytes) -> dict[str, Any]:
        try:
            message = json.loads(raw)
        except ValueError:
            raise CloseConnection(0) from None
        return message if isinstance(message, dict) else {}
