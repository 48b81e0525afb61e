"""A card with a mistake: the message names the key, what stands there, and what to write."""

import pytest

from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.unit

TOP = {"name": '"x"', "title": '"X"', "family": '"policy"', "adapter": '"m:create"', "licence": '"MIT"'}
PYTHON = 'kind = "python"\ninterpreter = "python3"'


def told(tmp_path, text):
    (tmp_path / "x.toml").write_text(text, encoding="utf-8")
    return [f"{error.message}; {error.remedy}" for error in load_cards(tmp_path, plug_ins=False).errors]


def card(more="", **changes):
    entries = {key: value for key, value in {**TOP, **changes}.items() if value is not None}
    return "\n".join(f"{key} = {value}" for key, value in entries.items()) + f"\n{more}\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (card(name='"My System"'), "name: 'My System' stands there; write a-z, 0-9, - and _ alone"),
        (card(name="5"), "name: 5 stands there; write text in quotes"),
        (card(title='""'), "title: '' stands there; write some text"),
        (card(family='"full-duplex"'), "did you mean 'full_duplex'?"),
        (card(adapter='"mine.create"'), "write module:callable"),
        (card(adapter='"mine.py:create"'), "without .py"),
        (card(adaptor='"m:create"'), "adaptor: a card has no such key; write 'adapter', or remove it"),
        (card(licence=None), "licence: is missing; add it"),
        (card("[settings]\nlicence = 'MIT'", licence=None), "it stands below [settings]: move it above"),
        (card(interpreter='"python3"'), "interpreter: a card has no such key; move it below [environment]"),
        (card(f"[environment]\n{PYTHON}\nlicence = 'MIT'"), "it belongs to the card and not to [environment]"),
        (card(temperature="0.5"), "move it below [settings] if it is the adapter's own"),
        (card(needs_env='"MY_KEY"'), 'needs_env: \'MY_KEY\' stands there; write a list, as ["..."]'),
        (card(needs_env='["my key"]'), "names of environment variables in capitals"),
        (card(max_inflight="0"), "write a number greater than or equal to 1"),
        (card(max_inflight="1.5"), "write a whole number"),
        (card(gpu='"perhaps"'), "write true or false"),
        (card(tracks="[]"), "write at least one entry"),
        (card(protocols='["pause"]', tracks='["multiparty"]'), "none of them belongs to a track"),
        (card("[settings]\nx = nan"), "settings.x: nan stands there; write text, a number"),
        (card("[settings.x]\ny = 1"), "settings.x: {'y': 1} stands there; write text, a number"),
        (card('[environment]\nkind = "pyhton"'), "did you mean 'python'?"),
        (card('[environment]\ninterpreter = "python3"'), "belongs to kind 'python', and kind is 'none'"),
        (card(f"[environment]\n{PYTHON}\nstep_timeout_s = inf"), "a number that is not inf or nan"),
        (card('[environment]\nkind = "command"\ncommand = ["node", "{cardfolder}/x"]'), "write {card_folder}"),
        (card(f"[environment]\n{PYTHON}", driver='"realtime"'), "is driven in this process"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_once_with_key_value_and_remedy(tmp_path, text, wanted):
    (only,) = told(tmp_path, text)
    assert wanted in only


def test_a_wrong_entry_of_a_list_is_told_once(tmp_path):
    (only,) = told(tmp_path, card(tracks='["multi-party"]'))
    assert only.startswith("tracks.0: 'multi-party' stands there")


def test_a_mistyped_key_that_must_be_there_is_told_as_both(tmp_path):
    assert told(tmp_path, card(licence=None, license='"MIT"')) == [
        "licence: is missing; add it: docs/adding-a-system.md says what it means",
        "license: a card has no such key; write 'licence', or remove it",
    ]


def test_a_long_value_is_cut(tmp_path):
    (only,) = told(tmp_path, card(max_inflight=f'"{"x" * 500}"'))
    assert len(only) < 200


def test_the_mark_that_some_editors_write_first_is_passed_over(tmp_path):
    assert told(tmp_path, "\ufeff" + card()) == []
