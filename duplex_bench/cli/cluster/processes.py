"""Processes that outlive the command that starts them: each with a log and a file that names it."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_POLL_S = 0.1
_KILLED_WITHIN_S = 60.0
"""Until the system has cleared a killed process away, on a machine that is busy (ours)."""


@dataclass(frozen=True, slots=True)
class Started:
    """A process by its id and the clock tick at which it began: an id alone may be somebody else's by now."""

    pid: int
    began: int

    def alive(self) -> bool:
        """Whether it still runs."""
        return _began(self.pid) == self.began


class Processes:
    """The processes of one cluster folder, by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def log(self, name: str) -> Path:
        """Where a process writes."""
        return self._folder / f"{name}.log"

    def running(self, name: str) -> Started | None:
        """The process of this name if it runs."""
        try:
            found = Started(**json.loads(self._note(name).read_text("utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return found if found.alive() else None

    def names(self) -> list[str]:
        """Every name that was started and not stopped, sorted."""
        return sorted(path.stem for path in self._folder.glob("*.pid"))

    def owner(self, pid: int) -> str | None:
        """Name of the process started here that a process comes from; None if from none."""
        started = {running.pid: name for name in self.names() if (running := self.running(name)) is not None}
        above: int | None = pid
        while above is not None and above not in started:
            above = _parent(above)
        return None if above is None else started[above]

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> Started:
        """Start a process in a session of its own, unless the one of this name runs."""
        running = self.running(name)
        if running is not None:
            return running
        self._folder.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                list(command),
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # Nobody else waits for it: an ended child would stay as a zombie and look alive.
        threading.Thread(target=process.wait, daemon=True).start()
        started = Started(process.pid, _began(process.pid))
        self._note(name).write_text(json.dumps(asdict(started)), "utf-8")
        return started

    def stop(self, name: str, first: signal.Signals = signal.SIGTERM, patience_s: float = 20.0) -> None:
        """End a process and what it started: asked first, killed when it does not hear."""
        running = self.running(name)
        if running is not None:
            _send(running.pid, first)
            if not wait_until(lambda: not running.alive(), patience_s):
                _send(running.pid, signal.SIGKILL)
                wait_until(lambda: not running.alive(), _KILLED_WITHIN_S)
        self._note(name).unlink(missing_ok=True)

    def _note(self, name: str) -> Path:
        return self._folder / f"{name}.pid"


def wait_until(condition: Callable[[], bool], patience_s: float) -> bool:
    """Wait for a condition; whether it came true in time."""
    pause = threading.Event()
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        pause.wait(_POLL_S)
    return True


def _send(pid: int, sent: signal.Signals) -> None:
    try:
        # It leads a session of its own, so that its group is it and what it started.
        os.killpg(pid, sent)
    except ProcessLookupError:
        return


def _began(pid: int) -> int:
    """Clock tick at which a process began; -1 if there is none, or it has ended and nobody has waited for it."""
    fields = _stat(pid)
    return -1 if not fields or fields[0] == "Z" else int(fields[19])


def _parent(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields and int(fields[1]) > 1 else None


def _stat(pid: int) -> list[str]:
    """What Linux says of a process, from its state on; nothing if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
