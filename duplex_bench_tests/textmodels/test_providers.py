"""The same behaviour over every protocol, against servers on loopback that answer as documented."""

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import pytest

from duplex_bench.storage.object_store import FolderStore
from duplex_bench.textmodels import model as model_module
from duplex_bench.textmodels.errors import MissingKeyError, ModelUnavailableError, RequestRefusedError
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.schema import Reply
from duplex_bench.textmodels.settings import CallSettings
from duplex_bench.textmodels.transport import transport
from duplex_bench.textmodels.wire import TextRequest, Turn

pytestmark = pytest.mark.process

VENDORS = ("openai", "anthropic", "gemini", "openai_compatible")
CALLS = CallSettings(attempts=3, first_wait_s=0.5, most_wait_s=30.0)


class Part(Reply):
    title: str
    n: int | None


class Verdict(Reply):
    verdict: Literal["yes", "no"]
    parts: list[Part]


GOOD = {"verdict": "yes", "parts": [{"title": "a", "n": None}]}


@pytest.fixture(params=VENDORS)
def api(request, text_api):
    return text_api(request.param, lambda prompt, body: GOOD)


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "store")


@pytest.fixture
def waits():
    return []


@pytest.fixture
def ask(api, store, waits):
    def asked(text="Is it?", calls=CALLS, sample=0, **settings):
        model = TextModel(api.settings(**settings), store, calls=calls, role="judge", sleep=waits.append)
        with model:
            return model.ask(TextRequest((Turn("user", text),), system="Be brief.", sample=sample), Verdict)

    return asked


def everything_written(folder):
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_good_answer_is_read_and_counted(ask, api):
    answer = ask()
    assert answer.value == Verdict.model_validate(GOOD)
    assert (answer.reason, answer.model, answer.readings, answer.cached) == ("", "a-model", 1, False)
    # Anthropic counts cached input apart, the others within the input.
    assert answer.usage.input_tokens == (110 if api.vendor == "anthropic" else 100)
    assert answer.usage.output_tokens == 20
    body = json.dumps(api.seen[0].body)
    assert "Is it?" in body
    assert "Be brief." in body


def test_the_same_request_is_never_sent_twice(ask, api):
    first, second = ask(), ask()
    assert len(api.seen) == 1
    assert second.cached
    assert (second.value, second.raw, second.key) == (first.value, first.raw, first.key)


@pytest.mark.parametrize("change", [{"text": "Is it not?"}, {"sample": 1}, {"epoch": 1}], ids=str)
def test_whatever_changes_the_request_is_a_new_request(ask, api, change):
    ask()
    assert not ask(**change).cached
    assert len(api.seen) == 2


def test_the_model_that_answered_is_recorded(ask, api):
    api.echo_model = "a-model-2026-11-01"
    assert ask().model == "a-model-2026-11-01"


@pytest.mark.parametrize("text", ["I think yes.", '{"verdict": "yes"', '{"verdict":"perhaps","parts":[]}'])
def test_what_cannot_be_read_is_fetched_again(ask, api, text):
    api.mishaps.append(text)
    answer = ask()
    assert answer.value is not None
    assert (answer.readings, len(api.seen)) == (2, 2)
    assert answer.usage.output_tokens == 40


def test_what_stays_unreadable_is_no_answer_and_costs_nothing_again(ask, api):
    api.mishaps.extend(["Yes!", '{"verdict": "yes", "parts": [], "mood": "good"}'])
    answer = ask()
    assert answer.value is None
    assert answer.reason == "unreadable: mood: Extra inputs are not permitted"
    assert "mood" in answer.raw
    again = ask()
    assert again.cached
    assert again.reason == answer.reason
    assert len(api.seen) == 2


def test_a_response_is_stored_before_it_is_read(ask, api, monkeypatch):
    def break_down(*_):
        raise RuntimeError("killed while reading")

    with monkeypatch.context() as patch:
        patch.setattr(model_module, "read_response", break_down)
        with pytest.raises(RuntimeError, match="killed"):
            ask()
    answer = ask()
    assert (answer.value.verdict, answer.cached, len(api.seen)) == ("yes", True, 1)


def test_a_code_fence_around_the_whole_is_read(ask, api):
    api.mishaps.append(f"```json\n{json.dumps(GOOD)}\n```")
    assert ask().value is not None
    assert len(api.seen) == 1


def test_refusals_and_blocks_are_not_asked_again(ask, api):
    api.mishaps.append(
        {
            "openai": lambda: api.wrapped("", refusal="I cannot."),
            "openai_compatible": lambda: api.wrapped("", finish="content_filter"),
            "anthropic": lambda: api.wrapped("", finish="refusal"),
            "gemini": lambda: {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
        }[api.vendor]()
    )
    answer = ask()
    assert answer.value is None
    assert answer.reason.split(":")[0] in {"refused", "blocked"}
    assert len(api.seen) == 1


def test_a_cut_off_answer_is_told_apart(ask, api):
    finish = {"anthropic": "max_tokens", "gemini": "MAX_TOKENS"}.get(api.vendor, "length")
    api.mishaps.extend([api.wrapped('{"verdict": "y', finish=finish)] * 2)
    assert ask().reason.startswith("truncated: ")


def test_a_body_that_is_no_response_is_no_answer(ask, api):
    api.mishaps.extend([(200, b"<html>"), (200, {"object": "list"})])
    answer = ask()
    assert answer.value is None
    assert answer.reason.split(":")[0] in {"not a response", "blocked"}


def test_rate_limits_are_waited_out_as_the_server_asks(ask, api, waits):
    limited = {"error": {"message": "slow down", "type": "rate_limit_error", "code": 429}}
    api.mishaps.extend([(429, limited, {"retry-after": "7"})] * 2)
    assert ask().value is not None
    assert len(api.seen) == 3
    assert all(7.0 <= wait <= 7.0 * 1.25 for wait in waits)
    assert waits[0] != waits[1]


@pytest.mark.parametrize("status", [500, 529])
def test_server_faults_are_sent_again_with_growing_waits(ask, api, waits, status):
    api.mishaps.extend([(status, {"error": {"message": "overloaded"}})] * 2)
    assert ask().value is not None
    assert 0.5 <= waits[0] <= 0.625
    assert 1.0 <= waits[1] <= 1.25


def test_a_cut_connection_is_sent_again(ask, api, waits):
    api.mishaps.append("cut")
    assert ask().value is not None
    assert len(waits) == 1


def test_a_slow_answer_is_lost_and_sent_again(api, store, waits):
    api.mishaps.append("slow")
    made = []

    def connect(settings):
        made.append(transport(settings))
        return made[0]

    def sleep(seconds):
        waits.append(seconds)
        # Only the answer that never comes is given up soon: a busy machine may be slow with the next.
        assert api.slow.wait(120)
        made[0]._client.timeout = 120.0

    with TextModel(api.settings(timeout_s=0.3), store, calls=CALLS, connect=connect, sleep=sleep) as model:
        assert model.ask(TextRequest((Turn("user", "Is it?"),)), Verdict).value is not None
    assert len(waits) == 1
    assert len(api.seen) == 2


def test_what_never_comes_is_said_and_not_stored(ask, api, store, waits):
    api.mishaps.extend([(503, {"error": {"message": "no"}})] * 3)
    with pytest.raises(ModelUnavailableError, match=r"HTTP 503.*3 sends"):
        ask()
    assert len(waits) == 2
    assert not list(store.keys("textmodels"))
    assert ask().value is not None


@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_request_is_sent_once(ask, api, waits, status):
    api.mishaps.append((status, {"error": {"message": "no such field"}}))
    with pytest.raises(RequestRefusedError, match=f"HTTP {status}.*no such field"):
        ask()
    assert not waits
    assert len(api.seen) == 1


def test_an_empty_account_is_not_waited_for(text_api, store, waits):
    api = text_api("openai")
    api.mishaps.append((429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}))
    model = TextModel(api.settings(), store, calls=CALLS, sleep=waits.append)
    with pytest.raises(RequestRefusedError, match="quota"):
        model.ask(TextRequest((Turn("user", "?"),)), Verdict)
    assert not waits


def test_no_more_calls_are_under_way_than_allowed(api, store):
    api.hold = threading.Event()
    model = TextModel(api.settings(), store, calls=CallSettings(concurrency=2))
    requests = [TextRequest((Turn("user", f"{n}"),)) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(model.ask, request, Verdict) for request in requests]
        api.hold.set()
        assert all(answer.result().value is not None for answer in answers)
    assert len(api.seen) == 8
    assert 1 <= api.most_under_way <= 2


def test_the_key_is_nowhere_but_in_the_header(ask, api, text_api, store, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    # A server that quotes the key in what it answers, and in what it refuses.
    api.mishaps.append(json.dumps({"verdict": "no", "parts": [{"title": text_api.canary, "n": 1}]}))
    answer = ask()
    errors = []
    for status in (400, 401, 403, 503):
        api.mishaps.extend([(status, {"error": {"message": f"bad key {text_api.canary}"}})] * 3)
        with pytest.raises((RequestRefusedError, ModelUnavailableError)) as caught:
            ask(text=f"{status}")
        error = caught.value
        while error is not None:
            errors.append(f"{error!r} {error.args}")
            error = None if error.__suppress_context__ else error.__context__
        api.mishaps.clear()
    assert text_api.canary in "".join(str(seen.headers) for seen in api.seen)
    assert answer.value.parts[0].title == "[key]"
    written = everything_written(tmp_path)
    assert b"verdict" in written
    out = capfd.readouterr()
    for told in (written.decode(), caplog.text, out.out, out.err, "".join(errors), repr(answer)):
        assert text_api.canary not in told


def test_without_a_key_the_message_names_the_variable(api, ask, monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "LOCAL_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(MissingKeyError, match=r"set \w+_KEY"):
        ask()
    assert not api.seen


def test_what_is_stored_needs_no_key(api, ask, monkeypatch):
    before = ask()
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "LOCAL_KEY"):
        monkeypatch.delenv(name)
    assert ask().value == before.value


@pytest.mark.parametrize("left", [b"", b"{", b'{"at":"\xc3', b"[]", b"7"])
def test_a_half_written_response_is_fetched_anew(ask, api, store, left):
    """Cut anywhere: also within a letter of two bytes."""
    ask()
    (name,) = store.keys("textmodels")
    store.put(name, left)
    assert ask().value is not None
    assert len(api.seen) == 2


def test_google_prefers_its_own_variable(text_api, store, monkeypatch):
    api = text_api("gemini", lambda prompt, body: GOOD)
    monkeypatch.setenv("GEMINI_API_KEY", "wrong")
    monkeypatch.setenv("GOOGLE_API_KEY", text_api.canary)
    assert TextModel(api.settings(), store).ask(TextRequest((Turn("user", "?"),)), Verdict).value is not None


@pytest.mark.parametrize(
    ("vendor", "settings", "sent"),
    [
        ("openai", {"model": "gpt-4o"}, True),
        ("openai", {"model": "gpt-5.1"}, False),
        ("openai", {"model": "o3"}, False),
        ("openai_compatible", {"model": "o3"}, True),
        ("anthropic", {}, False),
        ("anthropic", {"api_version": "2023-06-01"}, True),
        ("gemini", {}, True),
    ],
)
def test_a_temperature_goes_only_where_it_is_taken(text_api, store, vendor, settings, sent):
    api = text_api(vendor, lambda prompt, body: GOOD)
    model = TextModel(api.settings(temperature=0.0, **settings), store)
    answer = model.ask(TextRequest((Turn("user", "?"),)), Verdict)
    assert answer.value is not None
    assert ('"temperature": 0.0' in json.dumps(api.seen[0].body)) is sent
    assert bool(answer.notes) is not sent
