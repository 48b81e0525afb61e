"""What can go wrong in a review, each with the HTTP status the page sees."""

from http import HTTPStatus


class ReviewInputError(ValueError):
    """What was asked for cannot be done; the message names what and the remedy."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class UnknownError(ReviewInputError):
    """Nothing of that name here."""

    status = HTTPStatus.NOT_FOUND


class NotAllowedError(ReviewInputError):
    """This person may not do that, or not in this state."""

    status = HTTPStatus.FORBIDDEN


class ConflictError(ReviewInputError):
    """Someone else changed the copy first; ``current_version`` is what it is now."""

    status = HTTPStatus.CONFLICT

    def __init__(self, message: str, current_version: int) -> None:
        super().__init__(message)
        self.current_version = current_version


class DatabaseLostError(OSError):
    """The database did not answer. Nothing of the request was stored; it can be sent again as it is."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
