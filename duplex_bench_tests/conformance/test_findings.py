"""A rule that never fails would prove nothing: each is broken once here."""

import numpy as np
import pytest

from duplex_bench.contract.types import Out, SessionStats, Spec, checked_unit, refuse_unsupported
from duplex_bench.systems.conformance import RULES, check

pytestmark = pytest.mark.unit

SPEC = Spec(8000, 8000, 160, 160, lockstep=True, capabilities=frozenset({"seedable"}))


class Good:
    spec = SPEC
    sessions = 0

    def new_session(self):
        self.sessions += 1
        return self.Session(self)

    class Session:
        def __init__(self, system):
            self.system = system
            self.units = 0

        def open(self, request):
            refuse_unsupported(request, SPEC)

        def step(self, unit):
            checked_unit(unit, SPEC)
            self.units += 1
            return [Out("audio", self.units - 1, pcm=unit.copy())]

        def close(self):
            return SessionStats(units=self.units)


def broken(**changes):
    session = type("Session", (Good.Session,), changes)
    return type("Broken", (Good,), {"Session": session})()


def two_frames(self, unit):
    return Good.Session.step(self, unit) * 2


def wrong_length(self, unit):
    return [Out("audio", out.unit, pcm=out.pcm[1:]) for out in Good.Session.step(self, unit)]


def not_a_number(self, unit):
    return [Out("audio", out.unit, pcm=out.pcm * np.float32(np.nan)) for out in Good.Session.step(self, unit)]


def none(self, unit):
    Good.Session.step(self, unit)


def changes_its_input(self, unit):
    outs = Good.Session.step(self, unit)
    unit *= 2
    return outs


def takes_anything(self, unit):
    self.units += 1
    return []


def opens_anything(self, request):
    pass


def counts_nothing(self):
    return SessionStats()


def counts_closings(self):
    self.units += 1
    return SessionStats(units=self.units - 1)


def differs(self, unit):
    outs = Good.Session.step(self, unit)
    return [Out("audio", out.unit, pcm=(out.pcm / self.system.sessions).astype(np.float32)) for out in outs]


def fails(self, unit):
    raise KeyError("token")


@pytest.mark.parametrize(
    ("changes", "rule", "message"),
    [
        ({"step": two_frames}, "outputs keep the spec", "two audio frames"),
        ({"step": wrong_length}, "outputs keep the spec", "159 samples"),
        ({"step": not_a_number}, "outputs keep the spec", "NaN"),
        ({"step": none}, "outputs keep the spec", "NoneType"),
        ({"step": changes_its_input}, "leaves its input alone", "copy"),
        ({"step": takes_anything}, "refuses a partial unit", "159"),
        ({"step": takes_anything}, "refuses what is not finite", "NaN"),
        ({"open": opens_anything}, "refuses what it cannot take", "text_prompt"),
        ({"close": counts_nothing}, "counts its units", "0 units"),
        ({"close": counts_closings}, "closes at any time", "second close"),
        ({"step": differs}, "same seed, same output", "seed"),
        ({"step": fails}, "counts its units", "KeyError"),
    ],
)
def test_each_rule_finds_what_breaks_it(changes, rule, message):
    findings = check(broken(**changes))
    assert any(finding.rule == rule and message in finding.message for finding in findings), findings


def test_a_system_that_keeps_the_rules_has_no_findings():
    assert check(Good()) == []


def test_every_rule_is_broken_above():
    broken_rules = {mark.args[1][i][1] for mark in test_each_rule_finds_what_breaks_it.pytestmark
                    if mark.name == "parametrize" for i in range(len(mark.args[1]))}  # fmt: skip
    assert broken_rules == set(RULES)
