"""What can go wrong between us and a text model. No message ever holds a key."""


class MissingKeyError(ValueError):
    """No key in the environment; the message names the variable."""


class RequestRefusedError(ValueError):
    """The server will not take this request, however often it is sent: it is not sent again."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class TransientError(OSError):
    """A rate limit, a server fault or a lost connection: sending again may help."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelUnavailableError(OSError):
    """Every send of a call ended in a transient fault. Nothing is cached: the next run tries again."""


class BudgetError(ValueError):
    """A call would spend more than the budget allows, or its price is not known; it was not made."""
