"""Errors of stages without keys: Dagster keeps an error's whole chain and traceback in its event log, for good."""

import functools
import inspect
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from duplex_bench.storage.secrets import redacted, secret_values


class RedactedError(ValueError):
    """An error that named a key: its text, and where it was raised, with the key's variable in place of the key."""


def without_keys(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, whose errors name no key of the environment; errors that name none are raised as they are."""
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generated(*args: Any, **kwargs: Any) -> Iterator[Any]:
            try:
                yield from function(*args, **kwargs)
            except Exception as error:
                _raise_redacted(error)
                raise

        return generated

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            _raise_redacted(error)
            raise

    return called


def _raise_redacted(error: Exception) -> None:
    text = "".join(traceback.format_exception(error))
    if any(value in text for value in secret_values()):
        # Without its cause, whose text would be kept too.
        raise RedactedError(redacted(f"{type(error).__name__}: {error}\n\n{text}")) from None
