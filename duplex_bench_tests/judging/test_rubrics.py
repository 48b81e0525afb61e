import string

import pytest

from duplex_bench.judging.rubrics import RUBRIC_IDS, RubricError, rubric

pytestmark = pytest.mark.unit

# A changed file needs a new version here and in its head: verdicts of other words are not comparable.
KNOWN = {
    "acknowledgement": (1, "a0124472c6fb5c9c3d3d3aa9eb8fb5c39d07b94ce1ce3415a85f7404591318cf"),
    "answer_correctness": (1, "36ebbced58f80d9aff1e27646375e5159576475e68c8fd98adc4ca2314c0c99f"),
    "recall_correctness": (1, "16c1e88b4de5af88fb89bb9ba43d26ee99d344a07cb466f52a6a3b71588330d3"),
}


def test_no_rubric_changes_silently() -> None:
    assert {name: (rubric(name).version, rubric(name).sha256) for name in RUBRIC_IDS} == KNOWN


@pytest.mark.parametrize("name", RUBRIC_IDS)
def test_a_rubric_names_its_gaps_and_its_verdicts(name: str) -> None:
    found = rubric(name)
    assert found.id == name
    assert {gap for _, gap, _, _ in string.Formatter().parse(found.prompt) if gap} == set(found.fields)
    assert all(f'"{verdict}"' in found.prompt for verdict in found.verdicts)
    assert found.source


def test_fields_are_put_in_as_they_are() -> None:
    text = rubric("acknowledgement").render({"turn": "Shall we {text}?", "text": "mm {hm}", "other": "x"})
    assert "Shall we {text}?" in text
    assert "mm {hm}" in text


def test_what_is_missing_is_named() -> None:
    with pytest.raises(RubricError, match="needs gold, answer"):
        rubric("answer_correctness").render({"request": "When?"})
    with pytest.raises(RubricError, match="no rubric 'nice'"):
        rubric("nice")
