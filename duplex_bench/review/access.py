"""Who is at the page. On this machine a name is enough; from elsewhere a token is needed, for administrators their own.

A name is on trust among those who have the token: it says who did what, and keeps honest people apart.
"""

import hmac
import secrets
import threading
from dataclasses import dataclass
from typing import Final

from duplex_bench.review.errors import NotAllowedError, ReviewInputError
from duplex_bench.review.store import TOGETHER

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """How the page is served.

    Attributes:
        administrators: names that may approve and return sessions, see all copies and the agreement tables.
        blind: annotators begin with nothing and see neither the engine's labels and flags nor one another's copies.
        token: what everyone must show; None only on loopback.
        administrator_token: what administrators must show instead; None: the same as ``token``.
        seed: of the order in which the listener task plays windows.
    """

    administrators: frozenset[str] = frozenset({"admin"})
    blind: bool = False
    token: str | None = None
    administrator_token: str | None = None
    seed: int = 0

    def check_host(self, host: str) -> None:
        """Refuse to serve beyond this machine without tokens.

        Raises:
            ReviewInputError: another host than loopback, and a token is missing.
        """
        if host not in LOOPBACK and not (self.token and self.administrator_token):
            raise ReviewInputError(
                f"serving the review on {host} lets others in: set DUPLEX_BENCH_REVIEW_TOKEN and "
                "DUPLEX_BENCH_REVIEW_ADMIN_TOKEN, or serve on 127.0.0.1"
            )


@dataclass(frozen=True, slots=True)
class Person:
    """Who is signed in."""

    name: str
    administrator: bool


class SignedIn:
    """People by the random ticket in their cookie; forgotten when the server ends."""

    def __init__(self, settings: ReviewSettings) -> None:
        self._settings = settings
        self._people: dict[str, Person] = {}
        self._lock = threading.Lock()

    def enter(self, name: str, token: str) -> tuple[str, Person]:
        """A ticket for a person.

        Raises:
            ReviewInputError: no name that can be used.
            NotAllowedError: wrong token.
        """
        name = " ".join(name.split())
        if not name or len(name) > _LONGEST_NAME or not name.isprintable() or name.lower() == TOGETHER:
            raise ReviewInputError(f"the name {name[:_LONGEST_NAME]!r} cannot be used; give your own, up to 60 letters")
        administrator = name in self._settings.administrators
        needed = (self._settings.administrator_token if administrator else None) or self._settings.token
        if needed is not None and not hmac.compare_digest(needed.encode(), token.encode()):
            raise NotAllowedError("the token is not right for this name; ask whoever runs the review for it")
        ticket, person = secrets.token_urlsafe(32), Person(name, administrator)
        with self._lock:
            self._people[ticket] = person
        return ticket, person

    def person(self, ticket: str | None) -> Person | None:
        """Who has this ticket."""
        return self._people.get(ticket or "")

    def leave(self, ticket: str | None) -> None:
        """Forget a ticket."""
        with self._lock:
            self._people.pop(ticket or "", None)
