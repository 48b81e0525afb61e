from datetime import UTC, datetime
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from duplex_bench.textmodels.prompt_files import PromptError, prompt_file
from duplex_bench.textmodels.replies import read_response
from duplex_bench.textmodels.retry import wait_s
from duplex_bench.textmodels.schema import Reply, UnreadableError, read_as, strict_schema
from duplex_bench.textmodels.settings import CallSettings, ModelSettings, TextModelSettingsError
from duplex_bench.textmodels.transport import retry_after_s

pytestmark = pytest.mark.unit


class Inner(Reply):
    title: str = "x"
    default: int | None = None


class Outer(Reply):
    kind: Literal["a"]
    inner: Inner
    many: list[Inner] = Field(min_length=2)


def test_a_schema_is_strict_and_keeps_properties_that_are_named_like_keywords():
    schema = strict_schema(Outer)
    assert schema["required"] == ["kind", "inner", "many"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["kind"]["enum"] == ["a"]
    inner = schema["properties"]["inner"]
    assert set(inner["properties"]) == {"title", "default"} == set(inner["required"])
    assert schema["properties"]["many"]["items"] == inner
    assert "$ref" not in str(schema)
    assert "minItems" not in str(schema)


def test_what_the_schema_leaves_out_is_checked_here():
    with pytest.raises(UnreadableError, match="many: List should have at least 2"):
        read_as(Outer, '{"kind": "a", "inner": {"title": "t", "default": 1}, "many": []}')


@given(st.text(max_size=80))
def test_text_is_an_answer_or_says_why_not(text):
    try:
        found = read_as(Inner, text)
    except UnreadableError as error:
        found = str(error)
    assert found


@given(st.sampled_from(["openai", "anthropic", "gemini", "openai_compatible"]), st.text(max_size=60))
def test_any_body_gives_a_text_or_a_fault(vendor, raw):
    reply = read_response(vendor, raw)
    assert (reply.text is None) != (reply.fault is None)


@given(st.sampled_from(["openai", "anthropic", "gemini"]), st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["choices", "message", "content", "candidates", "parts", "usage", "type", "text"]),
        inner, max_size=4),
    max_leaves=12,
))  # fmt: skip
def test_any_json_gives_a_text_or_a_fault(vendor, value):
    import json

    reply = read_response(vendor, json.dumps(value))
    assert (reply.text is None) != (reply.fault is None)


@given(st.integers(1, 12), st.none() | st.floats(0, 1000), st.text(max_size=8))
def test_waits_grow_and_end(attempt, asked, key):
    settings = CallSettings(first_wait_s=1.0, most_wait_s=60.0)
    wait = wait_s(settings, key, attempt, asked)
    base = 2.0 ** (attempt - 1) if asked is None else asked
    assert min(base, 60.0) <= wait <= 1.25 * min(base, 60.0)


@pytest.mark.parametrize("asked", [None, 600.0])
def test_calls_that_wait_longest_do_not_come_back_together(asked):
    settings = CallSettings(first_wait_s=1.0, most_wait_s=60.0)
    waits = {wait_s(settings, f"call {n}", 12, asked) for n in range(50)}
    assert len(waits) == 50
    assert 60.0 <= min(waits) < 63.0
    assert 72.0 < max(waits) <= 75.0


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("-2", 0.0), ("Mon, 30 Nov 2026 12:00:30 GMT", 30.0), ("soon", None), ("nan", None)],
)
def test_retry_after(told, seconds):
    assert retry_after_s({"retry-after": told}, datetime(2026, 11, 30, 12, tzinfo=UTC)) == seconds


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": "a b"}, "no model id"),
        ({"model": "../x"}, "no model id"),
        ({"vendor": "openai_compatible"}, "needs base_url"),
        ({"base_url": "localhost"}, "is no address"),
        ({"max_output_tokens": 0}, "above zero"),
        ({"input_usd_per_million": 1.0}, "or neither"),
    ],
)
def test_settings_that_cannot_work_say_so(settings, told):
    with pytest.raises(TextModelSettingsError, match=told):
        ModelSettings(**{"vendor": "openai", "model": "m", **settings})


@pytest.mark.parametrize(
    "settings", [{"concurrency": 0}, {"most_wait_s": 0.1}, {"budget_usd": -1.0}, {"block_usd": 0.0}, {"readings": 0}]
)
def test_calls_that_cannot_be_made_say_so(settings):
    with pytest.raises(TextModelSettingsError):
        CallSettings(**settings)


def test_a_prompt_that_is_missing_is_named():
    with pytest.raises(PromptError, match="no prompt 'nothing'"):
        prompt_file("duplex_bench.textmodels", "nothing")
