"""``duplex-bench serve``: a free local endpoint that speaks a vendor's or a model's protocol, for development."""

import asyncio
import signal
from pathlib import Path

from duplex_bench.cli.console import console
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.systems.serving.delivery import Manner
from duplex_bench.systems.serving.host import LOOPBACK, hosted, threaded_desk
from duplex_bench.systems.serving.loopback import service, voice_named
from duplex_bench.systems.serving.peers import Endpoint

PATHS = {
    "openai-realtime": "/v1/realtime?model=cascade",
    "xai-realtime": "/v1/realtime?model=cascade",
    "gemini-live": "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
    "flm-audio": "/api/chat",
    "moshi": "/api/chat",
    "personaplex": "/api/chat?text_prompt=...&voice_prompt=NATM1.pt",
    "freeze-omni": "/socket.io/?EIO=4&transport=websocket",
    "minicpm-o-realtime": "/v1/realtime?mode=audio",
    "minicpm-o-demo": "/ws/duplex/adx_1",
    "vllm-omni-duplex": "/v1/realtime?duplex=1",
}
# The variable that points a card at the server, and the card.
CARDS = {
    "flm-audio": ("DUPLEX_BENCH_FLM_AUDIO_URL", "flm-audio"),
    "moshi": ("DUPLEX_BENCH_MOSHI_URL", "moshi-server"),
    "personaplex": ("DUPLEX_BENCH_PERSONAPLEX_URL", "personaplex-server"),
    "freeze-omni": ("DUPLEX_BENCH_FREEZE_OMNI_URL", "freeze-omni"),
    "minicpm-o-realtime": ("DUPLEX_BENCH_MINICPM_O_URL", "minicpm-o"),
    "minicpm-o-demo": ("DUPLEX_BENCH_MINICPM_O_DEMO_URL", "minicpm-o-demo"),
    "vllm-omni-duplex": ("DUPLEX_BENCH_MINICPM_O_VLLM_URL", "minicpm-o-vllm"),
}


def serve_protocol(
    protocol: str, port: int, host: str, voice: str, key: str | None, think_s: float, speed: float, data: Path
) -> int:
    """Serve until interrupted; returns the exit code.

    Raises:
        ValueError: An unknown protocol or voice, or another host than loopback without a key.
        OSError: The port is taken.
    """
    if host not in (LOOPBACK, "localhost", "::1") and not key:
        raise ValueError(f"serving on {host} lets others in: give --key as well, or serve on {LOOPBACK}")
    store = FolderStore(data / "store")
    made = service(
        protocol,
        voice_named(voice, store, semantic=True),
        key=key,
        desk=threaded_desk(),
        manner=Manner(speed=speed, think_s=think_s),
    )
    asyncio.run(_serve(made, protocol, port, host))
    return 0


async def _serve(made: Endpoint, protocol: str, port: int, host: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with hosted(made, port, host) as bound:
        console.print(
            f"[bold]{protocol}:[/] ws://{host}:{bound}{PATHS.get(protocol, '')}", highlight=False, soft_wrap=True
        )
        if protocol in CARDS:
            variable, card = CARDS[protocol]
            told = f"{variable}=ws://{host}:{bound} duplex-bench run --system {card}"
            console.print(told, highlight=False, soft_wrap=True)
        console.print("[dim]Ctrl-C ends it. Nothing leaves this machine.[/]", highlight=False)
        await stop.wait()
