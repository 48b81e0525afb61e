import pytest
from pydantic import ValidationError

from duplex_bench.systems.card import Environment, SystemCard, resolved
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.unit

CARD = {
    "name": "my-system", "title": "Mine", "family": "full_duplex", "adapter": "my.module:create", "licence": "MIT",
    "settings": {"temperature": 0.7},
}  # fmt: skip
TOML = 'name = "{name}"\ntitle = "Mine"\nfamily = "policy"\nadapter = "m:create"\nlicence = "MIT"\n'


@pytest.mark.parametrize(
    "change",
    [{"licence": "Apache-2.0"}, {"title": "Other"}, {"notes": "x"}, {"links": ("y",)}, {"provider": "p"},
     {"max_inflight": 4}, {"stands_in_for": "z"}, {"omitted": {"text_prompt": "none offered"}},
     {"tracks": ("multiparty",)}, {"endpointer_dependent": True}],
)  # fmt: skip
def test_what_is_said_of_a_system_reruns_nothing(change):
    assert SystemCard(**{**CARD, **change}).execution_digest() == SystemCard(**CARD).execution_digest()


@pytest.mark.parametrize(
    "change",
    [{"adapter": "other:create"}, {"adapter_version": "2"}, {"settings": {"temperature": 0.8}}, {"model_id": "m2"},
     {"epoch": 1}, {"environment": Environment(kind="python", interpreter="python3.12")}],
)  # fmt: skip
def test_what_a_system_does_is_in_the_digest(change):
    assert SystemCard(**{**CARD, **change}).execution_digest() != SystemCard(**CARD).execution_digest()


@pytest.mark.parametrize(
    "change",
    [{"name": "My System"}, {"name": ""}, {"colour": "red"}, {"adapter": "no_callable"},
     {"family": "robot"}, {"epoch": -1},
     {"max_inflight": 0}, {"licence": ""}, {"environment": {"kind": "python"}},
     {"environment": {"interpreter": "python"}},
     {"settings": {"nested": {"a": 1}}},
     {"uses_cache": True, "environment": {"kind": "python", "interpreter": "python"}}],
)  # fmt: skip
def test_a_card_that_is_not_one_is_refused(change):
    with pytest.raises(ValidationError):
        SystemCard(**{**CARD, **change})


def test_shipped_cards_are_valid_and_ordered_by_name():
    registry = load_cards(None, plug_ins=False)
    assert registry.errors == ()
    assert {"never-speak", "always-speak", "cascade-300ms", "cascade-500ms", "cascade-semantic"} <= set(registry.cards)
    assert list(registry.cards) == sorted(registry.cards)
    assert all(found.card.name == name for name, found in registry.cards.items())


def test_bad_cards_are_named_and_skipped_and_the_rest_goes_on(tmp_path):
    (tmp_path / "good.toml").write_text(TOML.format(name="good"))
    (tmp_path / "unknown.toml").write_text(TOML.format(name="unknown") + 'colour = "red"\n')
    (tmp_path / "missing.toml").write_text('name = "missing"\n')
    (tmp_path / "broken.toml").write_text("name = \n")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "double.toml").write_text(TOML.format(name="never-speak"))
    (tmp_path / "folder.toml").mkdir()
    registry = load_cards(tmp_path, plug_ins=False)
    assert "good" in registry.cards
    assert "unknown" not in registry.cards
    assert not registry.cards["never-speak"].file.startswith(str(tmp_path))
    errors = {error.file.rsplit("/", 1)[-1]: error for error in registry.errors}
    assert set(errors) == {"unknown.toml", "missing.toml", "broken.toml", "binary.toml", "double.toml", "folder.toml"}
    assert "colour" in errors["unknown.toml"].message
    assert "remove it" in errors["unknown.toml"].remedy
    assert "line 1" in errors["broken.toml"].message
    assert "never-speak.toml" in errors["double.toml"].message
    assert all(error.remedy for error in registry.errors)


def test_a_missing_folder_holds_no_cards(tmp_path):
    assert load_cards(tmp_path / "none", plug_ins=False) == load_cards(None, plug_ins=False)


def test_plug_ins_name_card_files_and_broken_ones_are_skipped(tmp_path, monkeypatch):
    (tmp_path / "plug.toml").write_text(TOML.format(name="plugged"))

    class Point:
        def __init__(self, name, load):
            self.name, self.value, self.load = name, f"{name}:cards", load

    def failing():
        raise ImportError("no torch")

    points = [Point("good", lambda: lambda: [tmp_path / "plug.toml"]), Point("bad", failing)]
    monkeypatch.setattr("duplex_bench.systems.registry.entry_points", lambda group: points)
    registry = load_cards(None)
    assert "plugged" in registry.cards
    (error,) = registry.errors
    assert "bad:cards" in error.file
    assert "no torch" in error.message


def test_paths_of_an_environment_are_seen_from_the_card(tmp_path):
    environment = {"kind": "python", "interpreter": "env/bin/python", "python_path": ["adapters"]}
    card = resolved(SystemCard(**{**CARD, "environment": environment}), tmp_path)
    assert card.environment.interpreter == str(tmp_path / "env/bin/python")
    assert card.environment.python_path == (str(tmp_path / "adapters"),)
    bare = SystemCard(**{**CARD, "environment": {"kind": "python", "interpreter": "python3"}})
    assert resolved(bare, tmp_path).environment.interpreter == "python3"


@pytest.mark.parametrize(
    "environment",
    [
        {"kind": "python", "interpreter": "../env/bin/python", "python_path": ["."]},
        {"kind": "command", "command": ["node", "{card_folder}/mine.mjs"]},
    ],
)
def test_a_card_that_was_moved_with_its_data_asks_for_no_rollout_again(tmp_path, environment):
    card = SystemCard(**{**CARD, "environment": environment})
    here, there = (resolved(card, tmp_path / place) for place in ("here", "there"))
    assert here.environment != there.environment
    assert here.execution_digest() == there.execution_digest() == card.execution_digest()
    # Tables keep a card as JSON.
    kept = SystemCard.model_validate_json(here.model_dump_json())
    assert (kept, kept.execution_digest()) == (here, card.execution_digest())
    other = SystemCard(**{**CARD, "environment": {**environment, "python_path": ["other"]}})
    assert resolved(other, tmp_path).execution_digest() != card.execution_digest()
