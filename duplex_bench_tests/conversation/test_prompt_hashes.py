"""A prompt does not change silently: raise its version, then note the new hash here."""

from importlib.resources import files

import pytest

from duplex_bench.textmodels.prompt_files import prompt_file

pytestmark = pytest.mark.unit

PACKAGE = "duplex_bench.conversation.prompts"
KNOWN = {
    "answer_alone": (1, "57b89b8176200f20"),
    "answer_from_text": (1, "367c569623a7fcb9"),
    "identity": (1, "8f5253e3934c2750"),
    "point_selection": (1, "2eb5a831bd4655ae"),
    "recall_fact": (1, "ad8fad25eae72e1f"),
    "specificity": (1, "ce649fc37e54320c"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_version_and_hash_belong_together(name):
    found = prompt_file(PACKAGE, name)
    assert found.id == name
    assert found.source
    assert (found.version, found.sha256[:16]) == KNOWN[name]


def test_every_prompt_is_watched():
    assert {one.name.removesuffix(".md") for one in files(PACKAGE).iterdir() if one.name.endswith(".md")} == set(KNOWN)
