"""A small hand-written pair, its scene from marked noise, and rollouts drawn as timelines."""

import numpy as np
import pytest

from duplex_bench.multiparty.items import item_of
from duplex_bench.multiparty.scenes import Scene, SceneLayout, build_scene
from duplex_bench.multiparty.scripts import Derivation, Fact, Pair, Script, Utterance
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import Item

RATE_HZ = 24_000


def _script(condition: str) -> Script:
    request = "Aria, how many eggs do we have?" if condition == "explicit" else "Can someone say how many eggs we have?"
    return Script(
        script_id=f"s1-{condition}",
        scenario_id="s1",
        condition="explicit" if condition == "explicit" else "implicit",
        domain="kitchen",
        family="total",
        utterances=(
            Utterance("u01", "A", "There are four eggs in the bowl.", "N2", "group"),
            Utterance("u02", "B", "And three more in the fridge.", "N2", "group"),
            Utterance("u03", "C", request, "T", "assistant"),
            Utterance("u04", "A", "Carla, could you stir the soup?", "N1", "C"),
            Utterance("u05", "C", "Aria told me a joke yesterday.", "N3", "group"),
            Utterance("u06", "B", "I put the corkscrew on the shelf.", "N2", "group"),
            Utterance("u07", "A", "Aria, where is the corkscrew?", "N4Q", "assistant", answer="on the shelf"),
            Utterance("u08", "C", "Never mind, it's on the shelf.", "N4R", "A", resolves="u07"),
            Utterance("u09", "B", "Then we can start.", "N2", "group"),
        ),
        gold_answer="seven",
        names=("Ben", "Anna", "Carla"),
        derivation=Derivation("sum", (Fact("u01", "four", 4), Fact("u02", "three", 3))),
    )


@pytest.fixture
def explicit_script() -> Script:
    return _script("explicit")


@pytest.fixture
def implicit_script() -> Script:
    return _script("implicit")


@pytest.fixture
def pair() -> Pair:
    return Pair("s1", _script("explicit"), _script("implicit"), ("u03",))


@pytest.fixture
def layout() -> SceneLayout:
    return SceneLayout(gap_min_s=0.5, gap_max_s=0.5)


@pytest.fixture
def clips() -> dict[str, np.ndarray]:
    """Each clip is two seconds of noise that no gap could be mistaken for."""
    rng = np.random.default_rng(5)
    return {f"u{n:02d}": (0.1 + 0.1 * rng.random(2 * RATE_HZ)).astype(np.float32) for n in range(1, 10)}


@pytest.fixture
def scene(explicit_script: Script, clips: dict[str, np.ndarray], layout: SceneLayout) -> Scene:
    return build_scene(explicit_script, clips, np.full(3 * RATE_HZ, 0.1, dtype=np.float32), layout)


@pytest.fixture
def item(scene: Scene) -> Item:
    live = AudioSlice("blob", 0, scene.n_samples, RATE_HZ, "content")
    return item_of(scene, live, licence="Apache-2.0")
