"""docs/text-models.md is read by the program: its profile is loaded, its code is run, its files exist."""

import re
import tomllib
from pathlib import Path

import pytest

from duplex_bench.stages.profile import parse_profile
from duplex_bench.textmodels.access import KEY_VARIABLES

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "text-models.md").read_text("utf-8")


def block(language):
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL).group(1)


def test_the_profile_of_the_page_is_one():
    profile = parse_profile(tomllib.loads(block("toml")), "the page")
    assert profile.multiparty.n_pairs == 50
    assert profile.judge.second.base_url.endswith("/v1")


def test_the_code_of_the_page_runs(text_api, tmp_path, monkeypatch, capsys):
    api = text_api("openai", lambda prompt, body: {"mood": "bad" if "rains" in prompt else "good"})
    monkeypatch.setenv("OPENAI_BASE_URL", api.url)
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python"), "page", "exec"), {"__name__": "page"})
    assert "mood='bad'" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_the_page_names_every_key_and_file_rightly():
    assert all(name in PAGE for names in KEY_VARIABLES.values() for name in names)
    rows = re.findall(r"\| `((?:judging|multiparty)/[\w/]+)/(\w+\.md`, `\w+\.md)`", PAGE)
    assert len(rows) == 3
    for folder, names in rows:
        for name in names.split("`, `"):
            assert (ROOT / "duplex_bench" / folder / name).is_file()
    assert (ROOT / "duplex_bench" / "textmodels" / "prices.toml").is_file()
