import ast
import sys
from pathlib import Path

import numpy as np
import pytest

import duplex_bench.contract
from duplex_bench.contract.types import (
    HistoryPart,
    OpenRequest,
    Prompt,
    Spec,
    UnsupportedError,
    checked_unit,
    refuse_unsupported,
)

pytestmark = pytest.mark.unit

PCM = np.zeros(10, dtype=np.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"in_rate_hz": 0}, "positive"),
        ({"unit_out_samples": 0}, "unit_out_samples"),
        ({"prime_units": -1}, "negative"),
        ({"model_shift_units": 1}, "lockstep"),
        ({"capabilities": frozenset({"telepathy"})}, "telepathy"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Spec(**{"in_rate_hz": 24000, "out_rate_hz": 24000, "unit_in_samples": 1920, **changes})


@pytest.mark.parametrize(
    ("capability", "request_parts"),
    [
        ("text_prompt", {"prompt": Prompt(text="You are Aria.")}),
        ("voice_prompt", {"prompt": Prompt(voice="a")}),
        ("text_history", {"history": (HistoryPart("user", "hi", 0, 1),)}),
        ("audio_history", {"history": (HistoryPart("user", "", 0, 1, PCM),)}),
        ("force_history", {"history": (HistoryPart("both", "", 0, 1, PCM, PCM),)}),
        ("sampling", {"sampling": {"temperature": 1.0}}),
    ],
)
def test_what_a_spec_does_not_offer_raises_and_what_it_offers_does_not(capability, request_parts):
    request = OpenRequest(seed=1, stimulus_id="x", **request_parts)
    with pytest.raises(UnsupportedError, match=capability):
        refuse_unsupported(request, Spec(24000, 24000, 1920))
    refuse_unsupported(request, Spec(24000, 24000, 1920, capabilities=frozenset({capability})))


@pytest.mark.parametrize(
    "unit",
    [
        np.zeros(9, dtype=np.float32),
        np.zeros(10),
        np.zeros((1, 10), dtype=np.float32),
        np.full(10, np.inf, dtype=np.float32),
    ],
)
def test_a_unit_is_whole_float32_and_finite(unit):
    with pytest.raises(UnsupportedError):
        checked_unit(unit, Spec(24000, 24000, 10))


def test_the_contract_imports_nothing_but_the_standard_library_and_numpy():
    allowed = set(sys.stdlib_module_names) | {"numpy", "duplex_bench"}
    for path in Path(duplex_bench.contract.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 10))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in names:
                assert name.split(".")[0] in allowed, (path.name, name)
                assert not name.startswith("duplex_bench.") or name.startswith("duplex_bench.contract"), (
                    path.name,
                    name,
                )
