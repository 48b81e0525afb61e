"""What a person can do at the review, and may: the page's requests without HTTP."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, Literal

from duplex_bench.conversation.flags import Flag
from duplex_bench.conversation.label_types import SPEAKERS
from duplex_bench.review.access import Person, ReviewSettings
from duplex_bench.review.edits import Add, Operation, RegionData, Remove
from duplex_bench.review.errors import NotAllowedError, ReviewInputError, UnknownError
from duplex_bench.review.formats import read_regions, write_regions
from duplex_bench.review.judgements import JudgementLog, ListenerAnswer, WindowCheck
from duplex_bench.review.material import Material, SessionMaterial, WindowEntry
from duplex_bench.review.publish import ReviewFolder
from duplex_bench.review.regions import as_before, regions_of
from duplex_bench.review.sound import SessionSound
from duplex_bench.review.store import OPEN, TOGETHER, Edit, LabelCopy, ReviewStore, Status
from duplex_bench.storage.digests import draw_order

Decision = Literal["submit", "withdraw", "approve", "return"]
# What a decision leads to, and from where.
_DECISIONS: Final[Mapping[Decision, tuple[Status, frozenset[Status]]]] = {
    "submit": ("submitted", OPEN),
    "withdraw": ("draft", frozenset({"submitted"})),
    "approve": ("approved", frozenset({"submitted"})),
    "return": ("returned", frozenset({"submitted", "approved", "superseded"})),
}
# Decoded recordings kept in memory: an hour of two channels at 24 kHz takes 350 MB.
_SOUNDS_KEPT: Final = 3
# How much is heard before the boundary: enough to follow the turn (ours).
CONTEXT_S: Final = 15.0
AFTER_S: Final = 3.0


def flag_key(flag: Flag) -> str:
    """A flag's name within its session."""
    return f"{flag.flag}:{flag.speaker}:{flag.start_s:.3f}"


class ReviewDesk:
    """One review: its material, store and settings."""

    def __init__(self, material: Material, store: ReviewStore, folder: ReviewFolder, settings: ReviewSettings) -> None:
        self.material = material
        self.store = store
        self.log = JudgementLog(store)
        self.settings = settings
        self._folder = folder
        self._sounds: OrderedDict[str, SessionSound] = OrderedDict()
        self._lock = threading.Lock()

    def _session(self, session_id: str) -> SessionMaterial:
        try:
            return self.material.session(session_id)
        except KeyError:
            raise UnknownError(f"there is no session {session_id!r}; go back to the list") from None

    def sound(self, session_id: str) -> SessionSound:
        """A session's sound, decoded once."""
        with self._lock:
            if session_id not in self._sounds:
                try:
                    self._sounds[session_id] = SessionSound(*self.material.audio(session_id))
                except KeyError:
                    raise UnknownError(f"no recording of session {session_id!r} is stored; run it again") from None
            self._sounds.move_to_end(session_id)
            while len(self._sounds) > _SOUNDS_KEPT:
                self._sounds.popitem(last=False)
            return self._sounds[session_id]

    def _sees_engine(self, person: Person) -> bool:
        return person.administrator or not self.settings.blind

    def _sees(self, person: Person, copy: LabelCopy) -> bool:
        return self._sees_engine(person) or copy.owner == person.name

    def _edits(self, person: Person, copy: LabelCopy) -> bool:
        return person.administrator or copy.owner in {person.name, TOGETHER}

    def sessions(self, person: Person) -> list[dict[str, object]]:
        """The list of sessions, with every copy that the person may see."""
        copies: dict[str, list[LabelCopy]] = {}
        for copy in self.store.copies():
            if self._sees(person, copy):
                copies.setdefault(copy.session_id, []).append(copy)
        return [
            {
                **asdict(entry),
                "n_flags": entry.n_flags if self._sees_engine(person) else 0,
                "copies": [
                    {
                        "copy_id": copy.copy_id, "owner": copy.owner, "status": copy.status, "version": copy.version,
                        "changed_at": copy.changed_at, "n_flags_done": len(copy.state.flags),
                    }
                    for copy in copies.get(entry.session_id, [])
                ],
            }
            for entry in self.material.sessions()
        ]  # fmt: skip

    def session(self, person: Person, session_id: str) -> dict[str, object]:
        """One session's material; in blind mode without labels and flags."""
        found = self._session(session_id)
        open_eyes = self._sees_engine(person)
        return {
            **asdict(found.entry),
            "duration_s": self.sound(session_id).duration_s,
            "n_flags": len(found.flags) if open_eyes else 0,
            "engine": [asdict(region) for region in regions_of(found.labels)] if open_eyes else [],
            "flags": [{**asdict(flag), "key": flag_key(flag)} for flag in found.flags] if open_eyes else [],
            "flags_note": found.flags_note if open_eyes else "",
            "words": {speaker: [asdict(word) for word in found.words[speaker]] for speaker in SPEAKERS},
        }

    def open_copy(self, person: Person, session_id: str, whose: Literal["mine", "together"]) -> dict[str, object]:
        """The person's own copy or the joint one, made if need be."""
        found = self._session(session_id)
        blind = self.settings.blind and not person.administrator
        if whose == "together" and self.settings.blind:
            raise NotAllowedError("this review is blind: everyone works on a copy of their own")
        owner = person.name if whose == "mine" else TOGETHER
        began_with: Literal["engine", "nothing"] = "nothing" if blind else "engine"
        return self.told(person, self.store.open_copy(session_id, owner, began_with, _begin(found, blind)))

    def told(self, person: Person, copy: LabelCopy) -> dict[str, object]:
        """A copy as the page gets it."""
        editable = self._edits(person, copy) and copy.status not in {"approved", "superseded"}
        return {**copy.plain(), "editable": editable, "decisions": self.store.decisions(copy.copy_id)}

    def copy(self, person: Person, copy_id: int) -> LabelCopy:
        """A copy that the person may see."""
        found = self.store.copy(copy_id)
        if not self._sees(person, found):
            raise UnknownError("there is no such copy; go back to the list of sessions")
        return found

    def edit(self, person: Person, copy_id: int, edit: Edit) -> dict[str, object]:
        """Store an edit."""
        found = self._editable(person, copy_id)
        return self.told(person, self.store.edit(copy_id, person.name, edit, self._duration_s(found)))

    def _duration_s(self, copy: LabelCopy) -> float:
        return self._session(copy.session_id).entry.duration_s

    def _editable(self, person: Person, copy_id: int) -> LabelCopy:
        found = self.copy(person, copy_id)
        if not self._edits(person, found):
            raise NotAllowedError(f"this is the copy of {found.owner}; open your own to change labels")
        if found.status == "submitted" and not person.administrator:
            raise NotAllowedError("this copy is submitted; withdraw it to change it again")
        return found

    def take_in(
        self, person: Person, copy_id: int, edit_id: str, version: int, name: str, text: str
    ) -> dict[str, object]:
        """Replace a copy's regions by those of a label file, as one edit that can be undone."""
        found = self._editable(person, copy_id)
        regions = as_before(read_regions(name, text, self._duration_s(found)), found.state.regions)
        operations: list[Operation] = [Remove(op="remove", region_id=one.region_id) for one in found.state.regions]
        for number, one in enumerate(regions):
            values = {**asdict(one), "region_id": f"{edit_id[:12]}-{number}"}
            operations.append(Add(op="add", region=RegionData(**values)))
        return self.edit(person, copy_id, Edit(edit_id, version, "import", tuple(operations)))

    def give_out(self, person: Person, copy_id: int, suffix: str) -> tuple[str, str]:
        """A copy as a label file: name and text."""
        found = self.copy(person, copy_id)
        text = write_regions(suffix, found.session_id, found.state.regions, self._duration_s(found))
        return f"{found.session_id}-{found.owner}{suffix}", text

    def decide(self, person: Person, copy_id: int, version: int, decision: Decision, note: str) -> dict[str, object]:
        """Submit or withdraw a copy (its owner), approve or return it (an administrator)."""
        found = self.copy(person, copy_id)
        if decision in {"approve", "return"} and not person.administrator:
            raise NotAllowedError("only an administrator approves or returns a copy")
        if decision in {"submit", "withdraw"} and not self._edits(person, found):
            raise NotAllowedError(f"this is the copy of {found.owner}; only they submit it")
        if decision == "return" and not note.strip():
            raise ReviewInputError("a returned copy needs a note that says what to do; write one")
        status, allowed_from = _DECISIONS[decision]

        def publish(decided: LabelCopy) -> None:
            if status == "approved":
                self._folder.write(decided, person.name)
            elif found.status == "approved":
                self._folder.withdraw(decided.session_id)

        return self.told(person, self.store.decide(copy_id, version, person.name, status, note, allowed_from, publish))

    def _window(self, point_id: str) -> WindowEntry:
        for window in self.material.windows():
            if window.point_id == point_id:
                return window
        raise UnknownError(f"there is no window {point_id!r}; reload the page")

    def windows(self, person: Person) -> list[dict[str, object]]:
        """Every selected window with the person's own verdict, in an order of the person's own."""
        mine = {check.point_id: check for check in self.log.checks() if check.person == person.name}
        known = {window.point_id: window for window in self.material.windows()}
        told = []
        for point_id in draw_order(self.settings.seed, sorted(known)):
            check = mine.get(point_id)
            verdict = None if check is None else {"accepted": check.accepted, "reason": check.reason}
            told.append({**asdict(known[point_id]), "verdict": verdict})
        return told

    def check_window(self, person: Person, point_id: str, accepted: bool, reason: str) -> None:
        """Note a verdict."""
        window = self._window(point_id)
        self.log.add_check(WindowCheck(point_id, window.session_id, person.name, accepted, reason))

    def listening(self, person: Person) -> dict[str, object]:
        """The windows that the person has not yet answered, without what they are, and how many are done."""
        done = {answer.point_id for answer in self.log.answers() if answer.person == person.name}
        ids = [window.point_id for window in self.material.windows()]
        # Each listener has an order of their own, so that practice does not fall on the same windows.
        order = draw_order(self.settings.seed, [f"{person.name}\n{one}" for one in ids])
        left = [one.split("\n", 1)[1] for one in order if one.split("\n", 1)[1] not in done]
        return {"left": left, "done": len(done & set(ids))}

    def answer(
        self, person: Person, point_id: str, would_speak: bool, after_boundary_s: float | None, words: str
    ) -> None:
        """Note a listener's answer."""
        window = self._window(point_id)
        self.log.add_answer(
            ListenerAnswer(point_id, window.session_id, person.name, would_speak, after_boundary_s, words)
        )

    def window_sound(self, point_id: str, future: bool) -> tuple[SessionSound, float]:
        """What is played of a window, and where in it the boundary lies (s). Without ``future`` it ends there."""
        window = self._window(point_id)
        start_s = max(0.0, min(window.turn_start_s, window.start_s - 3.0), window.start_s - CONTEXT_S)
        stop_s = window.end_s + AFTER_S if future else window.start_s
        return self.sound(window.session_id).part(start_s, stop_s), window.start_s - start_s

    def human_copies(self, session_id: str) -> list[LabelCopy]:
        """Copies of a session that count as somebody's work: submitted or decided."""
        return [copy for copy in self.store.copies(session_id) if copy.status not in OPEN]

    def reviewed(self, statuses: Sequence[Status] = ("approved",)) -> list[tuple[SessionMaterial, LabelCopy]]:
        """Copies of these statuses with their sessions, where the session is still in the material."""
        known = {entry.session_id for entry in self.material.sessions()}
        return [
            (self.material.session(copy.session_id), copy)
            for copy in self.store.copies()
            if copy.status in statuses and copy.session_id in known
        ]


def _begin(found: SessionMaterial, blind: bool) -> list[Any]:
    return [] if blind else regions_of(found.labels)
