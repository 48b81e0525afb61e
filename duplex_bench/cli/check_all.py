"""``duplex-bench systems check --all``: every card that can be run here through the suite, in one table."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from duplex_bench.audio.files import write_atomic
from duplex_bench.cli.serve import CARDS, PATHS
from duplex_bench.speech import engines
from duplex_bench.stages.conformance import VOICE, StoredExamination, examine_card, level_text
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.systems.adapters.minicpm_session import VOICE_ENV
from duplex_bench.systems.card import SystemCard, missing_env
from duplex_bench.systems.environments import not_set_up
from duplex_bench.systems.workers import SystemStartError

# Real time is mostly waiting, but each server recognises and speaks beside the others.
_SERVED_AT_ONCE: Final = 3
_ENDS_WITHIN_S: Final = 30.0
"""A server of ours that was asked to end; killed then (ours)."""
_GPU_DEVICES: Final = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
_ADAPTERS: Final = "duplex_bench.systems.adapters."
# By the adapter's module; the three servers of MiniCPM-o are told apart by the dialect.
_PROTOCOLS: Final[Mapping[str, str]] = {
    "openai_realtime": "openai-realtime",
    "openai_compatible": "openai-realtime",
    "xai_realtime": "xai-realtime",
    "gemini_live": "gemini-live",
    "flm_audio": "flm-audio",
    "moshi_server": "moshi",
    "personaplex_server": "personaplex",
    "freeze_omni": "freeze-omni",
}
_DIALECTS: Final[Mapping[str, str]] = {
    "realtime": "minicpm-o-realtime",
    "demo": "minicpm-o-demo",
    "vllm-omni": "vllm-omni-duplex",
}
_KEYED: Final = ("openai_realtime", "xai_realtime", "gemini_live")
_VOICE_TEXT: Final = "I lend my voice to the model, and say no more than this."
PASSED_OVER: Final = "passed over"
NOT_STARTED: Final = "did not start"


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of one card.

    ``level`` is that of the suite, ``none`` where the contract is broken, or says that the card did not start or was
    passed over; ``told`` then says why. ``broken`` and ``not_applicable`` name rules.
    """

    system: str
    against: str
    level: str
    broken: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    took_s: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether it was tried and does not keep what must be kept."""
        return self.level in (NOT_STARTED, "none")

    def as_data(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def check_all(
    cards: Mapping[str, SystemCard],
    data: Path,
    store: ObjectStore,
    *,
    loopback: bool = False,
    say: Callable[[Checked], None] = lambda _: None,
) -> list[Checked]:
    """Every card through the suite, in the order of ``cards``. Nothing is paid: a vendor is never connected to.

    Args:
        cards: By name, with their paths resolved.
        data: Data folder.
        store: Where levels are kept for the report, except of cards that were held against a server of ours.
        loopback: Hold cards whose server is not here against our own server of its protocol, in another process.
        say: Called with each result as it comes.
    """
    found: dict[str, Checked] = {}
    to_serve: dict[str, str] = {}
    for card in cards.values():
        protocol = protocol_of(card)
        why = why_not(card, data)
        if why and loopback and protocol:
            to_serve[card.name] = protocol
            continue
        if why:
            found[card.name] = Checked(card.name, "", PASSED_OVER, told=(why,))
        else:
            found[card.name] = _tried(card, against(card), partial(examine_card, card, data, store))
        say(found[card.name])
    with ThreadPoolExecutor(_SERVED_AT_ONCE) as threads:
        jobs = {
            name: threads.submit(_served_check, cards[name], protocol, data, store)
            for name, protocol in to_serve.items()
        }
        for name, job in jobs.items():
            found[name] = job.result()
            say(found[name])
    return [found[name] for name in cards]


def why_not(card: SystemCard, data: Path) -> str:
    """Why the system of ``card`` cannot be checked here; empty if it can."""
    if card.provider:
        return f"opens paid sessions at {card.provider}: systems check {card.name} --paid"
    missing = missing_env(card, os.environ)
    if missing:
        return f"set {' and '.join(missing)}"
    unmade = not_set_up(card, data / "cache")
    if unmade:
        return unmade
    if card.gpu and not any(Path(device).exists() for device in _GPU_DEVICES):
        return "needs a GPU, and there is none here"
    url = str(card.settings.get("url", ""))
    if card.driver == "realtime" and url and not _listens(url):
        return f"nobody listens at {url}"
    return ""


def protocol_of(card: SystemCard) -> str:
    """The protocol of ours that stands in for the card's server; empty if there is none."""
    module = card.adapter.partition(":")[0].removeprefix(_ADAPTERS)
    if module == "minicpm_o":
        return _DIALECTS.get(str(card.settings.get("dialect", "realtime")), "")
    return _PROTOCOLS.get(module, "")


def against(card: SystemCard) -> str:
    """What a card that can be run here is held against, in words."""
    if card.environment.kind != "none":
        return f"its own environment, {card.model_id or 'no model named'}"
    if card.settings.get("protocol"):
        return f"our server of {card.settings['protocol']}, in memory"
    return "its own server" if card.driver == "realtime" else "in this process"


def pointed_at(card: SystemCard, url: str, voice: str) -> SystemCard:
    """``card`` with its server at ``url`` and no key: nothing of it leaves this machine."""
    module = card.adapter.partition(":")[0].removeprefix(_ADAPTERS)
    changed: dict[str, object] = {"url": url}
    if module in _KEYED:
        # Otherwise a variable of the user's would lead back to the vendor.
        changed |= {"url_env": "", "key_env": []}
    if card.settings.get("dialect") == "vllm-omni" and not os.environ.get(VOICE_ENV):
        changed["voice"] = voice
    return card.model_copy(update={"settings": {**card.settings, **changed}, "provider": "", "needs_env": ()})


@contextmanager
def served(protocol: str, data: Path) -> Iterator[str]:
    """Our server of ``protocol`` in another process; gives the address that a card is pointed at.

    It answers in tones: recognition would take the time of a busy machine, and what is tried is the wire.

    Raises:
        SystemStartError: It ended before it served; says what it wrote.
    """
    command = [
        sys.executable, "-m", "duplex_bench.cli.main", "serve", "--protocol", protocol, "--port", "0", "--voice",
        "tone", "--data", str(data),
    ]  # fmt: skip
    environ = {name: value for name, value in os.environ.items() if name != "DUPLEX_BENCH_SERVE_KEY"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ)
    try:
        told = process.stdout.readline() if process.stdout else ""
        bound = re.search(r"ws://[^\s/]+", told)
        if bound is None:
            raise SystemStartError(f"our server of {protocol} did not start: {told.strip() or 'it said nothing'}")
        by_path = protocol not in CARDS
        yield bound.group() + (PATHS[protocol].partition("?")[0] if by_path else "")
    finally:
        process.terminate()
        try:
            process.communicate(timeout=_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _served_check(card: SystemCard, protocol: str, data: Path, store: ObjectStore) -> Checked:
    def examined() -> StoredExamination:
        with served(protocol, data) as url:
            pointed = pointed_at(card, url, str(_voice_file(data, store)))
            return examine_card(pointed, data, store, keep=False)

    return _tried(card, f"our server of {protocol}, on a socket", examined)


def _tried(card: SystemCard, held_against: str, examined: Callable[[], StoredExamination]) -> Checked:
    begun = time.monotonic()
    try:
        kept = examined()
    except SystemStartError as error:
        return Checked(card.name, held_against, NOT_STARTED, told=(str(error),), took_s=time.monotonic() - begun)
    results = kept.examination.results
    broken = [result for result in results if result.status == "broken"]
    return Checked(
        card.name,
        held_against,
        level_text(kept),
        tuple(result.rule for result in broken),
        tuple(result.rule for result in results if result.status == "not_applicable"),
        tuple(f"{result.rule}: {message}" for result in broken for message in result.messages),
        round(time.monotonic() - begun, 1),
    )


def _voice_file(data: Path, store: ObjectStore) -> Path:
    """A recording that lends a model its voice, as a WAV file below ``data``."""
    path = data / "cache" / "lent-voice.wav"
    if not path.exists():
        clip = engines.text_to_speech("embedded", store).speak(_VOICE_TEXT, VOICE)
        write_atomic(path, clip.samples, clip.sample_rate_hz)
    return path


def _listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 443), timeout=2.0):
            return True
    except OSError:
        return False
