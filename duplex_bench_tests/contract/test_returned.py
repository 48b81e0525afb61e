"""What a system gives back in the wrong type is refused where it gives it back, with what to write instead."""

import numpy as np
import pytest

from duplex_bench.contract.codec import encode
from duplex_bench.contract.returned import (
    checked_outs,
    checked_session,
    checked_stats,
    checked_system,
)
from duplex_bench.contract.types import InvalidOutputError, Out, SessionStats, Spec
from duplex_bench.rollout.outputs import DeclaredLatency, timed

pytestmark = pytest.mark.unit

SPEC = Spec(24_000, 24_000, 1920)


def audio(pcm, **more):
    return [Out("audio", 0, pcm=pcm, **more)]


def silence(dtype=np.float32, shape=960):
    return np.zeros(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("outs", "told"),
    [
        (None, "step returned None: return a list of Out"),
        ((out for out in ()), "step returned something of type generator"),
        (silence(), "step returned something of type ndarray"),
        ([silence()], "a list with something of type ndarray in it: every entry is an Out"),
        ([Out("sound", 0)], "unknown kind of output 'sound'; known are"),
        ([Out("state", 0, state="talking")], "unknown state 'talking'"),
        ([Out("text", 1.0, text="x")], "unit of an output is 1.0"),
        ([Out("text", True, text="x")], "unit of an output is True"),
        (audio(None), "the system returned None"),
        (audio(b"\0\0"), "np.frombuffer(pcm, '<i2').astype(np.float32) / 32768"),
        (audio([0.0, 0.1]), "the system returned something of type list"),
        (audio(silence(np.int16)), "int16 (960,): .astype(np.float32) / 32768"),
        (audio(silence(np.int32)), "/ 2147483648"),
        (audio(silence(np.float64)), "float64 (960,): .astype(np.float32)"),
        (audio(silence(shape=(960, 2))), "give one channel, flat"),
        ([Out("text", 0, text=5)], "text of an output is 5"),
        (audio(silence(), response_id=5), "response_id of an output is 5"),
        (audio(silence(), available_s=float("nan")), "available_s of an output is nan"),
        (audio(silence(), model_time_s="1"), "model_time_s of an output is '1'"),
        (audio(silence(), cost_ms=None), "cost_ms of an output is None"),
    ],
)
def test_outputs_of_a_wrong_type_are_refused(outs, told):
    with pytest.raises(InvalidOutputError) as refused:
        checked_outs(outs)
    assert told in str(refused.value)


def test_outputs_of_the_right_types_pass_numbers_of_numpy_among_them():
    outs = [Out("audio", np.int64(0), pcm=silence(), cost_ms=np.float32(2.0)), Out("text", 0, text="x")]
    assert checked_outs(outs) == outs
    assert b'"unit": 0' in encode({"unit": np.int64(0)})


@pytest.mark.parametrize(
    ("stats", "told"),
    [
        (None, "close returned None"),
        ({"units": 1}, "close returned something of type dict: return SessionStats"),
        (SessionStats(units="1"), "units = '1'"),
        (SessionStats(context_used_s=float("inf")), "context_used_s = inf"),
        (SessionStats(extra={"model": object()}), "no plain data: something of type object"),
        (SessionStats(extra={"loss": float("nan")}), "no plain data"),
    ],
)
def test_statistics_that_cannot_be_kept_are_refused(stats, told):
    with pytest.raises(InvalidOutputError) as refused:
        checked_stats(stats)
    assert told in str(refused.value)


class NoSpec:
    def new_session(self):
        return None


class DictSpec(NoSpec):
    spec = ("in_rate_hz", 24_000)


class NoSessions:
    spec = SPEC


@pytest.mark.parametrize(
    ("system", "told"),
    [
        (None, "callable returned None: return the system"),
        (NoSpec(), "returned something of type NoSpec whose spec is None"),
        (DictSpec(), "whose spec is something of type tuple: it is to be a duplex_bench.contract.types.Spec"),
        (NoSessions(), "something of type NoSessions, which has no new_session(), by which"),
    ],
)
def test_what_is_no_system_is_refused(system, told):
    with pytest.raises(InvalidOutputError) as refused:
        checked_system(system)
    assert told in str(refused.value)


def test_what_is_no_session_is_refused():
    with pytest.raises(
        InvalidOutputError, match=r"new_session returned something of type object, which has no open\(\)"
    ):
        checked_session(object())


def test_samples_that_nobody_scaled_are_refused_and_a_little_overshoot_is_not():
    with pytest.raises(InvalidOutputError, match="audio reaches 3000, full scale is 1: divide"):
        timed(*audio(np.full(960, 3000.0, np.float32)), 0, SPEC, DeclaredLatency())
    timed(*audio(np.full(960, -1.3, np.float32)), 0, SPEC, DeclaredLatency())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"in_rate_hz": 24_000.0}, "in_rate_hz is a whole number, got 24000.0"),
        ({"unit_in_samples": "1920"}, "unit_in_samples is a whole number"),
        ({"unit_out_samples": 1.5}, "unit_out_samples is a whole number"),
        ({"lockstep": "yes"}, "lockstep is True or False"),
        ({"context_s": "long"}, "context_s is a number of seconds, or None"),
        ({"context_s": float("nan")}, "context_s is a number"),
        ({"capabilities": "seedable"}, "capabilities is a set of names"),
    ],
)
def test_a_spec_of_wrong_types_names_the_field(changes, told):
    with pytest.raises(ValueError, match=told):
        Spec(**{"in_rate_hz": 24_000, "out_rate_hz": 24_000, "unit_in_samples": 1920, **changes})


def test_capabilities_may_be_a_list():
    assert Spec(24_000, 24_000, 1920, capabilities=["seedable"]).capabilities == frozenset({"seedable"})
