"""PersonaPlex's adapter on the package's classes: grid against the training-time forward, prompts, history, voices."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from duplex_bench.contract.types import HistoryPart, OpenRequest, Prompt, UnsupportedError
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.stages.cards import card_named
from duplex_bench.systems.conformance import check
from duplex_bench.systems.environments import open_system, worker_command

pytestmark = [pytest.mark.moshi, pytest.mark.timeout(3000)]

UNIT = 1920
N_UNITS = 12
RATE = 24_000
NO_CARDS = Path("no-user-cards")

# Run in the environment. What the adapter makes, taken greedily, is compared with the likeliest tokens of the
# package's training-time forward on all sixteen heads, over
# the whole grid from the first frame of the preamble to the last that is heard.
GRID = """
import json, sys, tempfile
from pathlib import Path
import numpy as np
import torch
from moshi.models import loaders
from safetensors.torch import load_file
from duplex_bench.contract.types import HistoryPart, OpenRequest, Prompt
from duplex_bench.systems.adapters.mimi_models import grid, tiny
from duplex_bench.systems.adapters.mimi_models.personaplex import SILENCE, TONE, PersonaPlex
from duplex_bench.systems.adapters.mimi_models.personaplex import PersonaPlexSettings, wrapped
from duplex_bench.systems.adapters.mimi_models.stepper import ForcedFrames

folder = Path(tempfile.mkdtemp(prefix="duplex-personaplex-test-"))
voices = folder / "voices"
voices.mkdir()
tiny.write_personaplex(folder)
described = json.loads((folder / "duplex_bench.json").read_text())
weights = folder / "model.safetensors"
whole = loaders.get_moshi_lm(weights, lm_kwargs=described["lm"], device="cpu", dtype=torch.float32)
told = {"heads": [len(whole.linears)]}

def greedy(voice=""):
    return PersonaPlexSettings(str(folder), "cpu", "float32", voices=str(voices), voice=voice, use_sampling=False)

system = PersonaPlex(greedy())
stepper = system.stepper
told["heads"].append(len(stepper.loaded.lm.linears))
noise = np.random.default_rng(1).standard_normal((2, 24_000)).astype(np.float32) * 0.1
part = HistoryPart("both", "", 0.0, 1.0, noise[0], noise[1], (("hello", 0.2, 0.4), ("there", 0.6, 0.8)))
units = np.random.default_rng(2).standard_normal((10, 1920)).astype(np.float32) * 0.1

def talk(system, history=(part,)):
    made, step = [], system.stepper.step
    session = system.new_session()
    session.open(OpenRequest(3, "x", Prompt(text="you are sam"), history))
    for unit in units:
        made.append(system.stepper.step(unit)[0])
    return made

made = talk(system)
# The same conversation as one table of frames, frame 0 of which is lost.
persona = stepper.encode(wrapped("you are sam"))
n_text = len(persona) + 12
user, own, before_s = grid.whole_frames(part)
words = [(w, a + before_s, b + before_s) for w, a, b in part.words]
row, _ = grid.text_row(words, len(user), stepper.encode)
stepper.reset(0, {})
heard = stepper.heard(np.concatenate([user, units]))
stepper.reset(0, {})
own_codes = stepper.heard(own)
text = [3] * 6 + persona + [3] * 6 + row.tolist() + [frame[0] for frame in made]
mine = [list(SILENCE)] * n_text + own_codes.T.tolist() + [frame[1:] for frame in made]
theirs = [list(TONE)] * n_text + heard.T.tolist()
codes = torch.tensor([[t, *m, *u] for t, m, u in zip(text, mine, theirs)]).T[None, :, 1:]

def short_of_the_likeliest(codes):
    # The acoustic codes of the last frame are made one call later.
    with torch.no_grad():
        out = whole(codes)
    short = []
    for frame in range(len(text) - len(made) - 1, codes.shape[2]):
        wanted = [(out.text_logits[0, 0, frame], codes[0, 0, frame])]
        if frame < codes.shape[2] - 1:
            wanted += [(out.logits[0, k, frame], codes[0, 1 + k, frame]) for k in range(8)]
        short += [float(logits.max() - logits[token]) for logits, token in wanted]
    return short

told["compared"] = len(short_of_the_likeliest(codes))
told["worst"] = max(short_of_the_likeliest(codes))
late = codes.clone()
late[:, 9:, 1:] = codes[:, 9:, :-1]
told["worst_if_heard_a_frame_late"] = max(short_of_the_likeliest(late))
told["distinct"] = len({tuple(frame) for frame in made})

# A voice: embeddings of what the model would read and the vendor's ring of four columns, against the frames themselves.
V = 9
generator = torch.Generator().manual_seed(4)
shown = torch.randint(0, 2048, (8, V), generator=generator)
initial = whole._get_initial_token()[0, :, 0]
lines = torch.cat([torch.full((1, V), 3), shown, torch.tensor(TONE)[:, None].expand(-1, V)])
table = torch.zeros(17, V + 1, dtype=torch.long)
for k, delay in enumerate(whole.delays):
    for position in range(V + 1):
        source = position - delay
        table[k, position] = lines[k, source] if 0 < source < V else initial[k]
embeddings = []
for position in range(V - 1):
    column = table[:, position]
    total = whole.text_emb(column[None, :1])
    for k in range(16):
        total = total + whole.emb[k](column[None, 1 + k : 2 + k])
    embeddings.append(total.detach())
cache = torch.full((1, 17, 4), -2)
for position in range(V - 3, V + 1):
    cache[0, :, position % 4] = table[:, position]
torch.save({"embeddings": torch.stack(embeddings), "cache": cache}, voices / "one.pt")
torch.save({"embeddings": torch.stack(embeddings)[..., :5], "cache": cache}, voices / "narrow.pt")
(voices / "none.pt").write_bytes(b"nothing")
(voices / "said.wav").write_bytes(b"RIFF")
import wave
def record(name, samples, rate, channels=1):
    with wave.open(str(voices / name), "wb") as file:
        file.setnchannels(channels); file.setsampwidth(2); file.setframerate(rate)
        file.writeframes((samples * 32767).astype("<i2").tobytes())
voice = np.clip(0.2 * np.random.default_rng(8).standard_normal(24_000), -1, 1)
record("recorded.wav", voice, 24_000)
record("softer.wav", voice / 2, 24_000)
record("other.wav", voice[::-1], 24_000)
record("quick.wav", voice[::2], 12_000)
record("stereo.wav", np.repeat(voice, 2), 24_000, 2)
record("silent.wav", voice * 0, 24_000)
record("short.wav", voice[:2_400], 24_000)
voiced = PersonaPlex(greedy("one.pt"))
replayed = talk(voiced)
stepper.reset(3, {})
frames = ForcedFrames(text[:0] + [3] * V + text[: n_text + len(row)],
                      torch.cat([shown, torch.tensor(mine[: n_text + len(row)]).T], dim=1),
                      torch.cat([lines[9:], torch.tensor(theirs[: n_text + len(row)]).T], dim=1))
stepper.heard(user)
stepper.force(frames, spoken_from=10**6)
stepped = [stepper.step(unit)[0] for unit in units]
told["voice_same"] = replayed == stepped
told["voice_matters"] = replayed != made
# A recording: the same tokens as its frames at -24 LUFS, forced one by one; the level it was recorded at is nothing.
from duplex_bench.systems.adapters.mimi_models.loudness import at_loudness
loud = at_loudness(np.round(voice * 32767).astype(np.int16) / 32768, 24_000, -24.0)
loud = np.concatenate([loud, np.zeros(-len(loud) % 1920, np.float32)]).reshape(-1, 1920)
shown = stepper.codes_of(loud)
R = shown.shape[1]
stepper.reset(3, {})
n_held, tones = n_text + len(row), torch.tensor(TONE)[:, None].expand(-1, R)
frames = ForcedFrames([3] * R + text[:n_held], torch.cat([shown, torch.tensor(mine[:n_held]).T], dim=1),
                      torch.cat([tones, torch.tensor(theirs[:n_held]).T], dim=1))
stepper.heard(user)
stepper.force(frames, spoken_from=10**6)
by_hand = [stepper.step(unit)[0] for unit in units]
recorded = {name: talk(PersonaPlex(greedy(name))) for name in ("recorded.wav", "softer.wav", "other.wav", "quick.wav")}
told["recorded_frames"] = R
told["recorded_same"] = recorded["recorded.wav"] == by_hand
told["recorded_level_is_nothing"] = recorded["softer.wav"] == recorded["recorded.wav"]
told["recorded_matters"] = recorded["other.wav"] != recorded["recorded.wav"] != made
told["recorded_at_another_rate"] = len(recorded["quick.wav"])
told["refused"] = {}
for name in ("narrow.pt", "none.pt", "said.wav", "../voices/one.pt", "NATF0.pt", "stereo.wav", "silent.wav",
             "short.wav"):
    try:
        voiced.new_session().open(OpenRequest(1, "x", Prompt(voice=name)))
    except ValueError as error:
        told["refused"][name] = type(error).__name__ + ": " + str(error)
told["capabilities"] = sorted(voiced.spec.capabilities)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def card(moshi_card):  # its environment is the one that this asks for
    return card_named(NO_CARDS, "personaplex-tiny")


@pytest.fixture(scope="module")
def personaplex(card, moshi_cache):
    with open_system(card, cache_folder=moshi_cache) as system:
        yield system


@pytest.fixture(scope="module")
def grid(card, moshi_cache, moshi_python, tmp_path_factory):
    command = worker_command(card, moshi_cache)
    environment = {
        "PYTHONPATH": command.python_path[0],
        "NO_TORCH_COMPILE": "1",
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(tmp_path_factory.mktemp("grid")),
    }
    done = subprocess.run([moshi_python, "-c", GRID], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def units():
    noise = np.random.default_rng(0).standard_normal((N_UNITS, UNIT)) * 0.1
    return list(noise.astype(np.float32))


def feed(system, units, seed=3, **told):
    session = system.new_session()
    session.open(OpenRequest(seed=seed, stimulus_id="x", **told))
    outs = [session.step(unit) for unit in units]
    return outs, session.close()


def spoken(outs):
    return [next(out.pcm for out in call if out.kind == "audio") for call in outs]


def first_difference(one, other):
    pairs = enumerate(zip(spoken(one), spoken(other), strict=True))
    return next((call for call, (a, b) in pairs if not np.array_equal(a, b)), None)


def history(seconds, seed=0, words=()):
    n = round(seconds * RATE)
    user, own = (np.random.default_rng(seed).standard_normal((2, n)) * 0.1).astype(np.float32)
    return (HistoryPart("both", "", 0.0, seconds, user, own, words),)


def test_what_it_makes_is_what_the_training_time_forward_finds_likeliest(grid):
    """Preamble, forced words and stream lie on the grid of sixteen heads to the frame, on eight of them."""
    assert grid["heads"] == [16, 8]
    # Text and eight codes of each of ten frames; of the last its text alone, the rest comes a call later.
    assert grid["compared"] == 9 * 9 + 1
    assert grid["worst"] < 1e-3
    assert grid["worst_if_heard_a_frame_late"] > 0.01
    # Not a model that says one thing whatever it hears.
    assert grid["distinct"] >= 5


def test_a_voice_file_read_again_is_the_voice_shown_frame_by_frame(grid):
    assert grid["voice_same"]
    assert grid["voice_matters"]
    assert "voice_prompt" in grid["capabilities"]


def test_voices_that_cannot_be_are_refused(grid):
    told = {name: text.partition(": ") for name, text in grid["refused"].items()}
    assert {kind for kind, _, _ in told.values()} == {"UnsupportedError"}
    assert "(n, 1, 1, 64)" in told["narrow.pt"][2]
    assert "cannot be read" in told["none.pt"][2]
    assert "voice said.wav cannot be used" in told["said.wav"][2]
    assert "2 channels" in told["stereo.wav"][2]
    assert "silent" in told["silent.wav"][2]
    assert "at least 0.4 s" in told["short.wav"][2]
    for name in ("../voices/one.pt", "NATF0.pt"):
        assert "there are: narrow.pt, none.pt, one.pt, other.wav" in told[name][2]


def test_a_recorded_voice_is_brought_to_the_vendors_level_and_shown_frame_by_frame(grid):
    assert grid["recorded_frames"] == 13
    assert grid["recorded_same"]
    assert grid["recorded_level_is_nothing"]
    assert grid["recorded_matters"]
    assert grid["recorded_at_another_rate"] == grid["compared"] // 9 + 1


def test_it_conforms(personaplex):
    assert check(personaplex) == []


def test_one_frame_out_for_each_in_from_the_first(personaplex, units):
    outs, stats = feed(personaplex, units)
    assert [len(pcm) for pcm in spoken(outs)] == [UNIT] * N_UNITS
    assert (stats.units, stats.empty_steps) == (N_UNITS, 0)
    # The preamble counts: two spacers and a token a frame of the persona.
    assert stats.context_used_s > (N_UNITS + 12) * 0.08
    assert (personaplex.spec.prime_units, personaplex.spec.model_shift_units) == (0, 0)


def test_what_is_heard_first_changes_the_frame_beside_it(personaplex, units):
    later = []
    for unit in range(1, 8):
        until = units[: unit + 3]
        changed = [*until[:unit], np.roll(until[unit], 700) * 3, *until[unit + 1 :]]
        first = first_difference(feed(personaplex, until)[0], feed(personaplex, changed)[0])
        assert first is not None
        later.append(first - unit)
    assert set(later) <= {0, 1}
    assert 0 in later


def test_seed_persona_and_history_each_count_and_nothing_else_is_left_behind(personaplex, units):
    words = (("hello", 0.2, 0.4), ("there", 0.5, 0.9))
    base = {"prompt": Prompt(text="you are sam"), "history": history(1.0, words=words)}
    first, _ = feed(personaplex, units, **base)
    feed(personaplex, units, seed=9)
    assert first_difference(first, feed(personaplex, units, **base)[0]) is None
    moved = (("hello", 0.2, 0.4), ("there", 0.8, 0.9))
    for other in (
        {**base, "seed": 4},
        {**base, "prompt": Prompt(text="you are kim")},
        {**base, "history": history(1.0, seed=1, words=words)},
        # A word that is said later is another history.
        {**base, "history": history(1.0, words=moved)},
    ):
        assert first_difference(first, feed(personaplex, units, **other)[0]) is not None


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"prompt": Prompt(text="  ")}, "empty text prompt"),
        ({"prompt": Prompt(voice="NATM1.pt")}, "voice_prompt"),
        ({"sampling": {"warmth": 2}}, "warmth"),
        ({"history": history(164.1)}, "longer than the 164 s"),
        ({"history": history(1.0) * 2}, "one part"),
    ],
)
def test_what_it_cannot_take_is_refused(personaplex, told, message):
    session = personaplex.new_session()
    with pytest.raises(UnsupportedError, match=message):
        session.open(OpenRequest(seed=1, stimulus_id="x", **told))
    session.close()


def test_a_whole_rollout_is_placed_by_model_time(personaplex):
    live = (np.random.default_rng(2).standard_normal(RATE) * 0.1).astype(np.float32)
    result = run(personaplex, OpenRequest(seed=5, stimulus_id="x"), live, RATE, StreamPlan(1.0))
    assert result.outcome is Outcome.COMPLETED, result.reason
    starts = [event["start_s"] for event in result.events if event["kind"] == "audio"]
    assert starts == pytest.approx([0.08 * k for k in range(25)])
