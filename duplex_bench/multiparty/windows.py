"""Scored windows of a scene, in seconds of the listener timeline: 0 is the first sample of the preamble (15.4-15.6)."""

from duplex_bench.audio.time import to_seconds
from duplex_bench.multiparty.rules import ScoringRules
from duplex_bench.multiparty.scenes import PlacedTurn, Scene
from duplex_bench.multiparty.scripts import SILENCE_TYPES
from duplex_bench.records.items import Window

REQUEST, SILENCE, YIELD = "request", "silence", "yield"


def windows_of(scene: Scene, rules: ScoringRules | None = None) -> tuple[Window, ...]:
    """Every window of ``scene`` in order of time.

    - T: kind ``request``, from the end of T for ``rules.request_window_s``.
    - N1 to N3: kind ``silence``, from the turn's onset to the next human onset, or the end of the scene (15.5).
    - N4Q with its N4R: kind ``yield``, from the end of N4Q to the end of observation, which is the later of the
      deadline and the next human onset after N4R, or the end of the scene (15.6).

    Marks: ``t_start_s`` and ``t_end_s`` (request and silence), ``turn_end_s`` (silence); ``question_start_s``,
    ``question_end_s``, ``resolution_start_s``, ``resolution_end_s``, ``next_onset_s``, ``observation_end_s`` (yield).
    Labels: ``turn_type``, ``addressee``, ``speaker``, ``utterance_id``, ``text``.
    """
    rules = rules or ScoringRules()
    rate = scene.sample_rate_hz
    end_s = to_seconds(scene.n_samples, rate)
    asked = next(turn for turn in scene.turns if turn.utterance.turn_type == "T")
    request = {"t_start_s": to_seconds(asked.start_sample, rate), "t_end_s": to_seconds(asked.stop_sample, rate)}
    found: list[Window] = []
    for number, turn in enumerate(scene.turns):
        start, stop = to_seconds(turn.start_sample, rate), to_seconds(turn.stop_sample, rate)
        next_onset = _onset(scene, number + 1, end_s)
        kind = turn.utterance.turn_type
        if kind == "T":
            found.append(_window(REQUEST, turn, stop, stop + rules.request_window_s, request))
        elif kind in SILENCE_TYPES:
            found.append(_window(SILENCE, turn, start, next_onset, request | {"turn_end_s": stop}))
        elif kind == "N4Q":
            resolution = scene.turns[number + 1]
            resolved = to_seconds(resolution.start_sample, rate)
            following = _onset(scene, number + 2, end_s)
            observed = max(resolved + rules.deadline_s, following)
            marks = {
                "question_start_s": start,
                "question_end_s": stop,
                "resolution_start_s": resolved,
                "resolution_end_s": to_seconds(resolution.stop_sample, rate),
                "next_onset_s": following,
                "observation_end_s": observed,
            }
            found.append(_window(YIELD, turn, stop, observed, marks))
    return tuple(found)


def _onset(scene: Scene, number: int, end_s: float) -> float:
    if number >= len(scene.turns):
        return end_s
    return to_seconds(scene.turns[number].start_sample, scene.sample_rate_hz)


def _window(kind: str, turn: PlacedTurn, start_s: float, end_s: float, marks: dict[str, float]) -> Window:
    spoken = turn.utterance
    labels = {
        "turn_type": spoken.turn_type,
        "addressee": spoken.addressee,
        "speaker": spoken.speaker,
        "utterance_id": spoken.utterance_id,
        "text": spoken.text,
    }
    return Window(f"{spoken.utterance_id}-{kind}", kind, start_s, end_s, dict(marks), labels)
