"""A rule that never fails would prove nothing: each is broken once here."""

import numpy as np
import pytest

from duplex_bench.contract.types import Out, SessionStats, Spec, checked_unit, refuse_unsupported
from duplex_bench.systems.conformance import RULES, check, examine

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
            refuse_unsupported(request, self.system.spec)

        def step(self, unit):
            checked_unit(unit, SPEC)
            self.units += 1
            return [Out("audio", self.units - 1, pcm=unit.copy())]

        def close(self):
            return SessionStats(units=self.units)


def broken(spec=SPEC, **changes):
    session = type("Session", (Good.Session,), changes)
    return type("Broken", (Good,), {"Session": session, "spec": spec})()


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


def remembers(self, unit):
    outs = Good.Session.step(self, unit)
    self.system.loudest = max(getattr(self.system, "loudest", 0.0), float(abs(unit).max()) * (1 + 0.1 * self.seed))
    return [Out("audio", out.unit, pcm=np.full(160, self.system.loudest, dtype=np.float32)) for out in outs]


def opens_with_seed(self, request):
    refuse_unsupported(request, self.system.spec)
    self.seed = request.seed


def forced_changes_history(self, request):
    for part in request.history:
        part.user_pcm[:] = 0.0


def counts_history(self, request):
    self.units = len(request.history)


def comes_early(self, unit):
    outs = Good.Session.step(self, unit)
    return [Out("audio", out.unit, pcm=out.pcm, model_time_s=(self.units - 3) * 0.02) for out in outs]


def is_too_long(self, unit):
    # A frame of 20 ms every 10 ms: the listener cannot hear both where they belong.
    outs = Good.Session.step(self, unit)
    return [Out("audio", out.unit, pcm=out.pcm, model_time_s=out.unit * 0.01) for out in outs]


def skips_quiet_units(self, unit):
    outs = Good.Session.step(self, unit)
    return outs if self.units % 3 else []


def deaf(self, unit):
    return [Out("audio", out.unit, pcm=np.full(160, 0.1, dtype=np.float32)) for out in Good.Session.step(self, unit)]


def deaf_burst(self, unit):
    """Ten seconds at once on the first loud unit, and no flush ever."""
    Good.Session.step(self, unit)
    if self.units != 3:
        return []
    return [Out("audio", 2, pcm=np.full(80_000, 0.1, dtype=np.float32))]


FORCED = Spec(8000, 8000, 160, 160, lockstep=True, capabilities=frozenset({"seedable", "force_history"}))
QUEUED = Spec(8000, 8000, 160, capabilities=frozenset({"seedable"}))
LIMITED = Spec(8000, 8000, 160, 160, lockstep=True, context_s=60.0)

CASES = [
    ({}, Spec(1, 24_000, 1), "the spec can be run", "in_rate_hz is 1: give 4000 to 192000 Hz"),
    ({}, Spec(8000, 8000, 1), "the spec can be run", "a unit of 0.000125 s: give 0.001 to 10 s"),
    ({}, Spec(8000, 8000, 160, prime_units=100_000), "the spec can be run", "are 2000 s: at most 60 s"),
    ({"step": two_frames}, SPEC, "outputs keep the spec", "two audio frames"),
    ({"step": wrong_length}, SPEC, "outputs keep the spec", "159 samples"),
    ({"step": not_a_number}, SPEC, "outputs keep the spec", "NaN"),
    ({"step": none}, SPEC, "outputs keep the spec", "returned None"),
    ({"step": changes_its_input}, SPEC, "leaves its input alone", "copy"),
    ({"step": takes_anything}, SPEC, "refuses a partial unit", "159"),
    ({"step": takes_anything}, SPEC, "refuses what is not finite", "NaN"),
    ({"open": opens_anything}, SPEC, "refuses what it cannot take", "text_prompt"),
    ({"close": counts_nothing}, SPEC, "counts its units", "0 units"),
    ({"close": counts_closings}, SPEC, "closes at any time", "second close"),
    ({"step": differs}, SPEC, "same seed, same output", "seed"),
    ({"step": fails}, SPEC, "counts its units", "KeyError"),
    ({"step": remembers, "open": opens_with_seed}, SPEC, "reset equals fresh", "what a conversation left"),
    ({"open": forced_changes_history}, FORCED, "keeps a forced history", "copy it first"),
    ({"open": counts_history}, FORCED, "keeps a forced history", "history is no unit"),
    ({"step": comes_early}, SPEC, "nothing before its cause", "model_shift_units"),
    ({"step": is_too_long}, SPEC, "clicks land where they were sent", "not heard there"),
    ({"step": skips_quiet_units}, SPEC, "silence is written", "frames of zeros"),
    ({"step": deaf}, SPEC, "reacts to content", "does the input reach the model"),
    ({"step": deaf_burst}, QUEUED, "flushes when interrupted", "no flush came"),
    ({}, QUEUED, "names its responses", "response_id"),
    ({}, LIMITED, "repeats itself", "seedable"),
    ({}, SPEC, "tells its words", "without text"),
    ({}, LIMITED, "tells its context", "how much of the context"),
]


@pytest.mark.parametrize(("changes", "spec", "rule", "message"), CASES)
def test_each_rule_finds_what_breaks_it(changes, spec, rule, message):
    results = examine(broken(spec, **changes)).results
    found = [
        told for result in results if result.rule == rule and result.status == "broken" for told in result.messages
    ]
    assert any(message in told for told in found), results


def test_every_rule_is_broken_above():
    assert {rule for _, _, rule, _ in CASES} == set(RULES)


def test_a_system_that_keeps_the_rules_has_no_findings():
    assert check(Good()) == []


def test_the_level_is_the_highest_without_a_breach():
    assert examine(Good()).level == "should"  # it tells no words
    assert examine(broken(step=skips_quiet_units)).level == "must"
    assert examine(broken(step=fails)).level is None


def test_a_policy_need_not_listen():
    assert examine(broken(step=deaf)).level == "must"
    assert examine(broken(step=deaf), policy=True).level == "should"


def test_where_a_rule_has_no_say_it_tells_why():
    told = {result.rule: result for result in examine(Good()).results}
    assert told["keeps a forced history"].status == "not_applicable"
    assert "force_history" in told["keeps a forced history"].messages[0]
    assert told["nothing before its cause"].messages == ("first effect 0 ms after its cause",)
