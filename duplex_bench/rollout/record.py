"""One rollout from stimulus to stored record. Only the stimulus crosses to the system."""

import gzip
import json
import time
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.resample import resample
from duplex_bench.audio.time import to_samples
from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.types import HistoryPart, OpenRequest, Prompt, Spec, System
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import Stimulus
from duplex_bench.records.outcome import RETRIED_OUTCOMES, Outcome
from duplex_bench.records.rollouts import RolloutRecord
from duplex_bench.rollout import realtime
from duplex_bench.rollout.frame_stepped import DRIVER_VERSION, run
from duplex_bench.rollout.listener import RolloutResult
from duplex_bench.rollout.outputs import DeclaredLatency
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.session_loop import SessionLoop
from duplex_bench.storage.blobs import BlobStore, from_pcm16, to_pcm16
from duplex_bench.storage.digests import canonical_json, digest_value, seed_from, stimulus_digest
from duplex_bench.storage.secrets import redacted

STREAM_RATE_HZ: Final = 24_000
EVENTS_KIND: Final = "jsonl.gz"
"""Kind of the blob that holds a rollout's event log."""
MAX_ATTEMPTS: Final = 3
# Before the second attempt of a realtime rollout; doubled for each further one (ours).
BACKOFF_S: Final = 2.0


def execution_key(
    card_execution_digest: str,
    stimulus_digest: str,
    protocol_settings: Any,
    repeat: int,
    adapter_version: str,
    model_id: str,
    epoch: int,
    driver: str = DRIVER_VERSION,
    history_words: str | None = None,
) -> str:
    """Key of a rollout (design 4): equal keys mean the same run, which is never made twice.

    Args:
        card_execution_digest: ``SystemCard.execution_digest()``.
        stimulus_digest: ``storage.digests.stimulus_digest``.
        protocol_settings: Plain data or a dataclass: everything that decides what is streamed for how long.
        repeat: 0 for the first rollout.
        adapter_version: Version of the adapter's code.
        model_id: The resolved model, or an empty string for a policy.
        epoch: Raised on a card to rerun a hosted model that drifts.
        driver: Version of the driver that runs it.
        history_words: ``storage.digests.history_words_digest``, for a system that takes word times.
    """
    # Named only where there are any, so that all other keys stay what they were.
    timed = [] if history_words is None else [history_words]
    return digest_value(
        "rollout/1", driver, card_execution_digest, stimulus_digest, protocol_settings, repeat,
        adapter_version, model_id, epoch, *timed,
    )  # fmt: skip


def request_for(stimulus: Stimulus, spec: Spec, blobs: BlobStore, seed: int) -> tuple[OpenRequest, tuple[str, ...]]:
    """What a session is told of ``stimulus``, as far as ``spec`` can take it.

    History goes as two forced channels, else as audio of the user with the turns as text, else as either alone. The
    assistant's words are told with forced channels: each word where the spec takes word times and the stimulus has
    them, else each completed turn.

    Returns:
        The request, and the names of what was left out: ``identity_prompt``, ``history``,
        ``assistant_history_audio`` (the user's audio is heard, the system's own part is read or missing).
    """
    omitted: list[str] = []
    prompt = Prompt()
    if stimulus.identity_prompt is not None:
        if "text_prompt" in spec.capabilities:
            prompt = Prompt(text=stimulus.identity_prompt)
        else:
            omitted.append("identity_prompt")
    history: tuple[HistoryPart, ...] = ()
    user, assistant = stimulus.history_user, stimulus.history_assistant
    turns = tuple(HistoryPart(turn.role, turn.text, turn.start_s, turn.end_s) for turn in stimulus.history)
    if user is not None and assistant is not None and "force_history" in spec.capabilities:
        pcm = _at_rate(user, spec.in_rate_hz, blobs)
        words = _timed(stimulus) if "word_times" in spec.capabilities else ()
        words = words or tuple((turn.text, turn.start_s, turn.end_s) for turn in turns if turn.role == "assistant")
        part = HistoryPart("both", "", 0.0, user.n_samples / user.sample_rate_hz, pcm,
                           _at_rate(assistant, spec.in_rate_hz, blobs), words)  # fmt: skip
        history = (part,)
    elif turns or user is not None:
        if turns and "text_history" in spec.capabilities:
            history = turns
        if user is not None and "audio_history" in spec.capabilities:
            heard = _at_rate(user, spec.in_rate_hz, blobs)
            history += (HistoryPart("user", "", 0.0, user.n_samples / user.sample_rate_hz, heard),)
        if not history:
            omitted.append("history")
        elif user is not None:
            omitted.append("assistant_history_audio")
    digest = stimulus_digest(stimulus)
    return OpenRequest(seed=seed, stimulus_id=digest, prompt=prompt, history=history), tuple(omitted)


def run_item(
    system: System | PushSystem,
    stimulus: Stimulus,
    blobs: BlobStore,
    *,
    system_name: str,
    rollout_key: str,
    plan: StreamPlan,
    repeat: int = 0,
    latency: DeclaredLatency | None = None,
    max_attempts: int = MAX_ATTEMPTS,
    sessions: SessionLoop | None = None,
) -> RolloutRecord:
    """Run ``system`` on ``stimulus`` and store what was heard and what happened.

    Stores the listener's audio as FLAC (PCM16, at the system's rate, padded with silence to the timeline) and the
    events as gzipped JSON lines, the first of which names the outcome, what was left out, and the times. Outcomes
    that may be bad luck are retried in a fresh session with the same seed.

    Args:
        system: Opened by ``systems.environments.open_system`` or made directly; a ``PushSystem`` is run in real time.
        stimulus: The item's stimulus, never its reference.
        blobs: Where the stimulus's audio is and the results go.
        system_name: Name of the card, for the record.
        rollout_key: From ``execution_key``.
        plan: From ``plan_for``.
        repeat: 0 for the first rollout; changes the seed.
        latency: Declared latency of a frame-stepped system, see ``DeclaredLatency``.
        max_attempts: At least 1.
        sessions: Where a ``PushSystem``'s session runs beside those of other threads; alone if None.

    Returns:
        The record of the last attempt; every attempt's cost is in it.

    Raises:
        ValueError: ``max_attempts`` below 1, or live audio that is no audio.
        KeyError: The stimulus's audio is not in ``blobs``.
    """
    if max_attempts < 1:
        raise ValueError(f"max_attempts must be at least 1, got {max_attempts}")
    started = time.perf_counter()
    digest = stimulus_digest(stimulus)
    request, omitted = request_for(stimulus, system.spec, blobs, seed_from("rollout", digest, repeat))
    live = _at_rate(stimulus.live, STREAM_RATE_HZ, blobs)
    after = None if stimulus.after is None else _at_rate(stimulus.after, STREAM_RATE_HZ, blobs)
    compute_s = 0.0
    attempts = 0
    wait_s = 0.0
    earlier: list[dict[str, Any]] = []
    while True:
        attempts += 1
        result = _attempt(system, request, live, after, plan, latency, wait_s, sessions)
        compute_s += result.compute_s
        result.events.extend(earlier)
        if result.outcome not in RETRIED_OUTCOMES or attempts == max_attempts:
            break
        if isinstance(system, PushSystem):
            # What a vendor refused once it refuses again; other failures are given time to pass.
            if result.outcome is Outcome.REFUSED:
                break
            earlier.append(_earlier_attempt(attempts, result))
            wait_s = result.retry_after_s or BACKOFF_S * 2.0 ** (attempts - 1)
    has_audio = result.outcome not in RETRIED_OUTCOMES
    return RolloutRecord(
        rollout_key=rollout_key,
        system=system_name,
        stimulus_digest=digest,
        repeat=repeat,
        outcome=result.outcome,
        reason=redacted(result.reason),
        listener_audio=_store_audio(result, blobs) if has_audio else None,
        sample_rate_hz=result.sample_rate_hz,
        timeline_s=result.timeline_s,
        input_s=result.input_s,
        events=_store_events(
            result, omitted, blobs, realtime.DRIVER_VERSION if isinstance(system, PushSystem) else DRIVER_VERSION
        ),
        compute_s=compute_s,
        wall_s=time.perf_counter() - started,
        attempts=attempts,
    )


def _earlier_attempt(number: int, result: RolloutResult) -> dict[str, Any]:
    """What an attempt that was given up leaves in the log of the last: why, and what it cost."""
    cost = next((event.get("cost_usd") for event in result.events if event["kind"] == "close"), None)
    return {"kind": "earlier_attempt", "attempt": number, "reason": result.reason, "cost_usd": cost}


def _attempt(
    system: System | PushSystem,
    request: OpenRequest,
    live: npt.NDArray[np.float32],
    after: npt.NDArray[np.float32] | None,
    plan: StreamPlan,
    latency: DeclaredLatency | None,
    wait_s: float,
    sessions: SessionLoop | None,
) -> RolloutResult:
    if isinstance(system, PushSystem):
        return realtime.run(system, request, live, STREAM_RATE_HZ, plan, wait_s=wait_s, after=after, sessions=sessions)
    return run(system, request, live, STREAM_RATE_HZ, plan, latency=latency, after=after)


def read_events(digest: str, blobs: BlobStore) -> list[dict[str, Any]]:
    """The event log that ``run_item`` stored; raises KeyError if there is none."""
    return [json.loads(line) for line in gzip.decompress(blobs.get(digest, EVENTS_KIND)).splitlines()]


def _timed(stimulus: Stimulus) -> tuple[tuple[str, float, float], ...]:
    return tuple(
        (word.text, word.start_s, word.end_s)
        for word in stimulus.history_words
        if word.start_s is not None and word.end_s is not None
    )


def _store_audio(result: RolloutResult, blobs: BlobStore) -> str:
    padded = np.zeros(to_samples(result.timeline_s, result.sample_rate_hz), dtype=np.float32)
    padded[: len(result.listener)] = result.listener
    return blobs.put_audio(to_pcm16(padded), result.sample_rate_hz)


def _store_events(result: RolloutResult, omitted: tuple[str, ...], blobs: BlobStore, driver: str) -> str:
    # Only attempts that end the same way have the same log, so the number of attempts stays out of it.
    head = {
        "kind": "rollout",
        "driver": driver,
        "outcome": result.outcome.value,
        "reason": result.reason,
        "omitted": list(omitted),
        "input_s": result.input_s,
        "timeline_s": result.timeline_s,
    }
    # A vendor's refusal may repeat the key that it refused.
    lines = redacted("".join(canonical_json(event) + "\n" for event in [head, *result.events]))
    return blobs.put(gzip.compress(lines.encode(), compresslevel=6, mtime=0), EVENTS_KIND)


def _at_rate(part: AudioSlice, rate_hz: int, blobs: BlobStore) -> npt.NDArray[np.float32]:
    samples = resample(from_pcm16(blobs.read_slice(part)), part.sample_rate_hz, rate_hz)
    # What is streamed is PCM16 in every case, so that hosted and local systems hear the same samples.
    return samples if part.sample_rate_hz == rate_hz else from_pcm16(to_pcm16(samples))
