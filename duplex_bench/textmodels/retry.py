"""Sending again: after rate limits, server faults and lost connections, with growing, jittered waits."""

from collections.abc import Callable

import tenacity

from duplex_bench.storage.digests import generator_from
from duplex_bench.textmodels.errors import ModelUnavailableError, TransientError
from duplex_bench.textmodels.settings import CallSettings

Sleep = Callable[[float], None]


def wait_s(settings: CallSettings, key: str, attempt: int, asked_s: float | None) -> float:
    """Seconds before send ``attempt`` + 1: what the server asks for, else doubling, plus up to a quarter of jitter.

    The jitter comes from ``key``, so that calls that failed together do not come back together. ``most_wait_s`` bounds
    the wait before its jitter: cut afterwards, all calls that wait longest would come back at the same moment.
    """
    base = settings.first_wait_s * 2 ** (attempt - 1) if asked_s is None else asked_s
    jitter = 1.0 + 0.25 * float(generator_from("retry", key, attempt).random())
    # A server's own figure is a floor; ours is a middle.
    return min(settings.most_wait_s, base) * jitter


def send_again(
    send: Callable[[], str], settings: CallSettings, key: str, sleep: Sleep = tenacity.nap.sleep
) -> tuple[str, int]:
    """The result of ``send`` and how many sends it took.

    Raises:
        ModelUnavailableError: ``settings.attempts`` sends ended in transient faults.
        RequestRefusedError: from ``send``, after one send.
    """

    def waiting(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after_s if isinstance(error, TransientError) else None
        return wait_s(settings, key, state.attempt_number, asked)

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(TransientError),
        stop=tenacity.stop_after_attempt(settings.attempts),
        wait=waiting,
        sleep=sleep,
        reraise=True,
    )
    try:
        got = retrying(send)
    except TransientError as error:
        raise ModelUnavailableError(
            f"{error} ({settings.attempts} sends). Finished work is kept: run again later"
        ) from None
    return got, int(retrying.statistics.get("attempt_number", 1))
