"""Real items through each hosted adapter against its server, on virtual time, to scores; and no key in any file."""

import gzip
import importlib
import pkgutil

import polars as pl
import pytest

from duplex_bench import stages
from duplex_bench.rollout.record import read_events
from duplex_bench.stages import conversation, evaluation, multiparty
from duplex_bench.stages.profile import parse_profile
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.engine

CANARY = "sk-canary-52b7e0d4"
NAMES = ("loopback-openai-500ms", "loopback-xai-500ms", "loopback-gemini-500ms")
PROFILE = {
    "name": "hosted",
    "seed": 1,
    "multiparty": {
        "grammar": {
            "n_pairs": 1,
            "seed": 3,
            "four_humans_share": 0.0,
            "size": {"silence_turns_mean": 5.0, "n1_turns_mean": 1.0, "n3_turns_mean": 1.0, "elaborations_mean": 0.0},
        }
    },
    "conversation": {
        "generator": {"n_sessions": 1, "seed": 5, "minutes": 1.2},
        "corpus": {"liveliness_top_share": 1.0},
    },
    "speech": {"recogniser": "whisper-tiny.en"},
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        # In this process: to start a pool would cost more than the work.
        for found in pkgutil.iter_modules(stages.__path__):
            module = importlib.import_module(f"{stages.__name__}.{found.name}")
            if hasattr(module, "pool") and found.name != "pool":
                patch.setattr(module, "pool", lambda *_: None)
        patch.setenv("OPENAI_API_KEY", CANARY)
        yield Workspace(tmp_path_factory.mktemp("hosted"), parse_profile(PROFILE, "test"))


@pytest.fixture(scope="module")
def items(workspace):
    lively = conversation.lively_sessions(workspace).frame
    gaps = conversation.gap_fill(workspace, lively).frame
    labels = conversation.labels(workspace, conversation.engine_labels(workspace, lively, gaps).frame).frame
    points = conversation.points(workspace, conversation.candidates(workspace, lively, gaps, labels).frame).frame
    talks = conversation.items(workspace, lively, gaps, labels, points).frame
    pairs = multiparty.pairs(workspace, multiparty.scenarios(workspace).frame).frame
    spoken = multiparty.utterance_speech(workspace, pairs).frame
    scenes = multiparty.scenes(workspace, pairs, spoken).frame
    first = [talks.filter(pl.col("protocol") == kind).head(1) for kind in ("pause", "turn_end")]
    return {
        "conversation": pl.concat(first),
        "multiparty": multiparty.items(workspace, pairs, scenes).frame.head(1),
    }


def card_named(name):
    card = load_cards(None, plug_ins=False).cards[name].card
    # The adapter shows a key, as with the vendor; the server asks for none.
    return card.model_copy(update={"settings": {**card.settings, "key_env": ["OPENAI_API_KEY"]}})


@pytest.mark.parametrize("name", NAMES)
def test_a_pause_a_turn_end_and_a_scene_are_run_and_scored(name, workspace, items):
    card = card_named(name)
    blobs = BlobStore(workspace.store)
    for track, table in items.items():
        run = run_rollouts(workspace, track, table, card).frame
        heard = evaluation.activity(workspace, track, run, name).frame
        said = evaluation.words(workspace, track, run, name).frame
        verdicts = evaluation.judgements(workspace, track, table, run, heard, said, name).frame
        scores = evaluation.measurements(workspace, track, table, run, heard, said, verdicts, name).frame
        assert set(run["outcome"]) <= {"completed", "no_audio"}, run["reason"].to_list()
        assert scores["value"].is_not_null().sum() > 0
        for digest in run["events"]:
            events = read_events(digest, blobs)
            assert {"opened", "pacing", "close"} <= {event["kind"] for event in events}
            assert any(event["kind"] == "audio" for event in events) or set(run["outcome"]) == {"no_audio"}
    talk = run_rollouts(workspace, "conversation", items["conversation"], card).frame
    assert talk.join(items["conversation"], on="item_id").filter(pl.col("protocol") == "turn_end")[
        "outcome"
    ].to_list() == ["completed"]


def test_no_file_of_the_run_holds_the_key(workspace, items):
    for name in NAMES:
        run_rollouts(workspace, "conversation", items["conversation"], card_named(name))
    files = [path for path in workspace.data.rglob("*") if path.is_file()]
    assert any(path.name.endswith(".jsonl.gz") for path in files)
    for path in files:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        assert CANARY.encode() not in data, path
