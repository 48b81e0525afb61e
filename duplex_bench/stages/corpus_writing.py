"""The synthetic corpus, written by the processes of the pool: a session depends on its number and settings alone."""

from functools import cache
from pathlib import Path

from duplex_bench.conversation.generator import GeneratorSettings, SessionWriter, WrittenSession, finish
from duplex_bench.speech import engines
from duplex_bench.stages.pool import engine_pool
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.ledger import ItemLedger
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.serial import from_json, to_json


def write_corpus(workspace: Workspace, folder: Path) -> None:
    """Write the sessions of the profile's generator below ``folder``, then its tables and the truth.

    The ledger lies in the folder itself: an interrupted corpus goes on where it was, a deleted one begins anew.

    Raises:
        ValueError: a session could not be written; those that could are kept.
    """
    settings, speech = workspace.profile.conversation.generator, workspace.profile.speech.text_to_speech
    tasks = [Task(digest_value("session", number), str(number), number) for number in range(settings.n_sessions)]
    done = resume(
        ItemLedger(FolderStore(folder), "sessions"),
        "synthetic sessions",
        tasks,
        write_session,
        executor=engine_pool(speech, workspace.profile.processes),
        common=(str(workspace.data), str(folder), speech, settings),
    )
    if done.failed:
        raise ValueError(f"{len(done.failed)} sessions could not be written: {next(iter(done.failed.values()))}")
    finish(folder, [from_json(WrittenSession, done.payloads[task.key]) for task in tasks])


def write_session(data: str, folder: str, speech: str, settings: GeneratorSettings, number: int) -> str:
    """One session's files; what it holds as JSON."""
    return to_json(_writer(data, folder, speech, settings).write(number))


@cache
def _writer(data: str, folder: str, speech: str, settings: GeneratorSettings) -> SessionWriter:
    # Kept from session to session, since they share clips.
    store = FolderStore(Path(data) / "store")
    return SessionWriter(settings, engines.text_to_speech(speech, store), Path(folder))
