"""Items of the track: a scene's audio as stimulus, its windows and gold answer as sealed reference (design 2)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from duplex_bench.audio.time import to_seconds
from duplex_bench.multiparty.acoustics import CLEAN
from duplex_bench.multiparty.preamble import Preamble
from duplex_bench.multiparty.rules import ScoringRules
from duplex_bench.multiparty.scenes import Scene
from duplex_bench.multiparty.windows import windows_of
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import HistoryTurn, Item, Reference, Stimulus

THIRDS: Final = ("earlier", "middle", "later")


def item_of(
    scene: Scene,
    live: AudioSlice,
    *,
    licence: str,
    preamble: Preamble | None = None,
    rules: ScoringRules | None = None,
    language: str = "en",
    acoustics: str = CLEAN,
) -> Item:
    """The item of ``scene``, whose audio is stored as ``live``.

    An item in other acoustics than clean has an id and a condition of its own, "noise explicit" beside "explicit", so
    that no rate ever mixes them; attributes ``base_item``, ``addressing`` and ``acoustics`` pair it with the clean one.

    Attributes to group by: ``domain``, ``family``, ``n_humans``, ``n_turns``, ``request_time_s`` (end of T),
    ``preamble_end_s``, ``scene_s``, ``speakers`` and ``turn_types`` (one a turn, in the order of the transcript),
    ``preamble`` (id and version). ``with_request_thirds`` adds ``request_third``.

    Raises:
        ValueError: ``live`` is not as long as the scene, or at another rate.
    """
    if (live.n_samples, live.sample_rate_hz) != (scene.n_samples, scene.sample_rate_hz):
        raise ValueError(
            f"script {scene.script.script_id}: stored audio has {live.n_samples} samples at {live.sample_rate_hz} Hz, "
            f"the scene {scene.n_samples} at {scene.sample_rate_hz} Hz: store the scene again"
        )
    script, rate = scene.script, scene.sample_rate_hz
    asked = next(turn for turn in scene.turns if turn.utterance.turn_type == "T")
    transcript = tuple(
        HistoryTurn(
            "user", turn.utterance.text, to_seconds(turn.start_sample, rate), to_seconds(turn.stop_sample, rate)
        )
        for turn in scene.turns
    )
    attributes: dict[str, str | float | int | bool] = {
        "domain": script.domain,
        "family": script.family,
        "n_humans": script.n_humans,
        "n_turns": len(script.utterances),
        "request_time_s": to_seconds(asked.stop_sample, rate),
        "preamble_end_s": to_seconds(scene.preamble_stop_sample, rate),
        "scene_s": to_seconds(scene.n_samples, rate),
        "speakers": " ".join(turn.utterance.speaker for turn in scene.turns),
        "turn_types": " ".join(turn.utterance.turn_type for turn in scene.turns),
        "preamble": f"{preamble.id}/{preamble.version}" if preamble else "",
        "acoustics": acoustics,
        "addressing": script.condition,
        "base_item": script.script_id,
    }
    clean = acoustics == CLEAN
    return Item(
        item_id=script.script_id if clean else f"{script.script_id}~{acoustics}",
        track="multiparty",
        cluster=script.scenario_id,
        condition=script.condition if clean else f"{acoustics} {script.condition}",
        stimulus=Stimulus("multiparty", live),
        reference=Reference(
            windows_of(scene, rules), gold_answer=script.gold_answer, transcript=transcript, attributes=attributes
        ),
        licence=licence,
        language=language,
    )


def with_request_thirds(items: Sequence[Item]) -> list[Item]:
    """``items`` with attribute ``request_third``: equal groups of all requests of both conditions (P1 A3.6).

    Cut by input timing alone (end of T on the stream), ties by item id, so that groups differ by at most one.
    """
    order = sorted(range(len(items)), key=lambda n: (items[n].reference.attributes["request_time_s"], items[n].item_id))
    group = {position: THIRDS[number * len(THIRDS) // len(items)] for number, position in enumerate(order)}
    return [
        replace(
            item,
            reference=replace(item.reference, attributes=item.reference.attributes | {"request_third": group[number]}),
        )
        for number, item in enumerate(items)
    ]
