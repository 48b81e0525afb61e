"""Profiles: every mistake is one line that names file and key, and says what is known there."""

import re
import tomllib
from importlib import resources

import pytest

from duplex_bench.stages.profile import Profile, ProfileError, load_profile, parse_profile, shipped_profiles

pytestmark = pytest.mark.unit

SMALLEST = """
name = "mine"
seed = 1
[multiparty.grammar]
n_pairs = 2
[conversation.generator]
n_sessions = 2
"""


def test_shipped_profiles_load_and_name_themselves():
    assert set(shipped_profiles()) >= {"demo", "paper"}
    for name in shipped_profiles():
        assert load_profile(name).name == name


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SMALLEST)
    found = load_profile(str(path))
    assert isinstance(found, Profile)
    assert (found.name, found.multiparty.grammar.n_pairs, found.gate.threshold) == ("mine", 2, 0.01)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("speed = 3", "unknown key speed: known here are"),
        ("[gate]\nthreshhold = 0.02", "unknown key gate.threshhold: known here are"),
        ("[rollout.protocols]\npause_s = 3.0", "unknown key rollout.protocols.pause_s"),
        ("[multiparty.grammar.size]\nturns = 3", "unknown key multiparty.grammar.size.turns"),
        ('[gate]\nthreshold = "loud"', "key gate.threshold"),
        ("[statistics]\nn_resamples = 1.5", "key statistics.n_resamples"),
        ('[conversation.corpus]\nkind = "tape"', "key conversation.corpus.kind"),
        ('[multiparty]\ndetector = "ear"', "key multiparty.detector"),
        ("[gate]\nthreshold = -1.0", "threshold"),
    ],
)
def test_a_mistake_names_file_and_key(tmp_path, more, told):
    path = tmp_path / "mine.toml"
    top, tables = (more, "") if not more.startswith("[") else ("", more)
    # A table that the smallest profile has already is merged into it.
    text = f"{top}\n{SMALLEST}\n{tables}"
    path.write_text(text)
    with pytest.raises(ProfileError) as raised:
        load_profile(str(path))
    message = str(raised.value)
    assert str(path) in message
    assert told in message
    assert "\n" not in message


@pytest.mark.parametrize("key", ["name", "multiparty", "conversation"])
def test_a_missing_key_is_named_without_the_whole_file(key):
    table = tomllib.loads(SMALLEST)
    del table[key]
    with pytest.raises(ProfileError, match=rf"^mine\.toml: key {key} is missing") as raised:
        parse_profile(table, "mine.toml")
    assert len(str(raised.value)) < 200


def test_a_file_that_is_not_there_or_is_no_toml(tmp_path):
    with pytest.raises(ProfileError, match=r"no such profile: name one of demo, .*paper, or a TOML file"):
        load_profile(str(tmp_path / "nowhere.toml"))
    path = tmp_path / "bad.toml"
    path.write_text("name = \n")
    with pytest.raises(ProfileError, match=re.escape(f"{path}: not TOML")):
        load_profile(str(path))
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(ProfileError, match=re.escape(str(path))):
        load_profile(str(path))


def test_the_digest_is_of_what_can_change_a_number():
    table = tomllib.loads(SMALLEST)
    digest = parse_profile(table, "a").digest
    assert parse_profile(table | {"processes": 7}, "b").digest == digest
    assert parse_profile(table | {"seed": 2}, "c").digest != digest
    assert parse_profile(table | {"gate": {"threshold": 0.02}}, "d").digest != digest


def test_the_paper_profile_has_the_papers_sizes():
    text = (resources.files("duplex_bench.profiles") / "paper.toml").read_text("utf-8")
    found = parse_profile(tomllib.loads(text), "paper.toml")
    assert found.multiparty.grammar.n_pairs == 2000
    assert (found.conversation.curation.n_pause, found.conversation.curation.n_turn_end) == (300, 300)
    assert (found.conversation.history_s, found.rollout.protocols.turn_end_cap_s) == (164.0, 30.0)
