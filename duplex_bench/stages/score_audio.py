"""Score a recording one already has: the measures of rollouts on a recorded system, with a page to listen to.

No adapter and no rollout: the recording is labelled by the rules of design 15.1, and what the system did at the user's
pauses and turn ends, and where one spoke over the other, is measured (``recording_scores``).
"""

from pathlib import Path

from duplex_bench.reporting.site.folder import require_replaceable
from duplex_bench.stages.recording_audio import prepare
from duplex_bench.stages.recording_report import Summary, write_report
from duplex_bench.stages.recording_scores import ScoreAudioSettings, Scored, measure
from duplex_bench.stages.recording_speech import speech_of
from duplex_bench.storage.object_store import FolderStore


def score_audio(
    user: Path,
    system: Path | None,
    labels: Path | None,
    out: Path,
    data: Path,
    settings: ScoreAudioSettings | None = None,
) -> Summary:
    """Score a recording and write its page and tables into ``out``.

    Args:
        user: the user's channel, or one two-channel file, the user left.
        system: the system's channel, if it is a file of its own.
        labels: RTTM, TextGrid or JSON for both speakers; None takes a file of the same name beside the audio, and
            where there is none our own detector and recogniser.
        out: folder of the page; it may hold an earlier one, or be empty or absent.
        data: folder of caches.
        settings: the numbers.

    Raises:
        ValueError: the audio or the labels cannot be used; the message names file and remedy.
        OSError: no space left.
    """
    require_replaceable(out)
    chosen = settings or ScoreAudioSettings()
    store = FolderStore(data / "store")
    scored = score(user, system, labels, store, chosen)
    return write_report(scored, out, store, chosen)


def score(
    user: Path, system: Path | None, labels: Path | None, store: FolderStore, settings: ScoreAudioSettings
) -> Scored:
    """As ``score_audio``, without the page."""
    recording = prepare(user, system, store, settings.gate)
    files = [user] if system is None else [user, system]
    speech = speech_of(recording, files, labels, store, settings.gate, settings.speech)
    return measure(recording, speech, settings)
