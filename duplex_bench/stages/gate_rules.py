"""What a run must show against its baseline: margins by metric, and what is done about what is missing."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Test = Literal["non_inferiority", "equivalence", "no_regression"]
Policy = Literal["fail", "report"]
Metric = Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]


class GateRulesError(ValueError):
    """The rules cannot be used; the message names file, key and remedy."""


class MetricRule(BaseModel):
    """How one metric is gated.

    Attributes:
        margin: the largest worsening that is accepted, in the metric's unit (for equivalence: change either way).
        test: another test than that of the whole gate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    margin: float = Field(ge=0)
    test: Test | None = None


class GateRules(BaseModel):
    """The rules of a gate. All numbers are ours.

    Attributes:
        test: ``non_inferiority``: the whole interval of the change must lie above minus the margin. ``equivalence``:
            the whole interval must lie within the margin either way. ``no_regression``: only an interval that lies
            below minus the margin altogether fails, so that few items prove nothing and pass.
        rate_margin: margin of headline metrics that are rates and have no margin of their own; without it only the
            metrics of ``margins`` are gated.
        margins: by metric. A headline metric without a margin is reported and not gated.
        not_shown: what an interval that reaches past the margin without lying beyond it does.
        too_few: what a metric does of which the baseline itself has values in fewer than two clusters, so that no run
            could be held against it.
        missing_systems: what a system of the baseline that the run lacks does.
        differing: what settings, code or engines that differ do.
        min_coverage: least share of the baseline's scored items, and of its windows, that the run must have too.
        min_shared: least share of the baseline's values of a metric that the run must have a value beside.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    test: Test = "non_inferiority"
    rate_margin: float | None = Field(default=0.05, ge=0)
    margins: dict[Metric, MetricRule] = Field(default_factory=dict)
    not_shown: Policy = "fail"
    too_few: Policy = "report"
    missing_systems: Policy = "fail"
    differing: Policy = "report"
    min_coverage: float = Field(default=0.95, gt=0, le=1)
    min_shared: float = Field(default=0.5, gt=0, le=1)


def read_rules(path: Path | None, margins: Sequence[str] = (), test: str | None = None) -> GateRules:
    """The rules of a TOML file, with single margins and the test set over them.

    Args:
        path: a file with the keys of ``GateRules`` (``margins`` holds ``metric = number`` or a table); None takes the
            defaults.
        margins: further ``metric=number``, which win.
        test: another test for the whole gate.

    Raises:
        GateRulesError: no such file, no TOML, an unknown key, or a value that does not fit.
    """
    table: dict[str, object] = {}
    where = "the gate's options"
    if path is not None:
        where = str(path)
        try:
            table = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            raise GateRulesError(f"{path} cannot be read ({error.strerror}): name a TOML file of gate rules") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise GateRulesError(f"{path}: not TOML: {error}") from error
    named = table.get("margins", {})
    by_metric = dict(named) if isinstance(named, dict) else {}
    for told in margins:
        metric, equals, value = told.partition("=")
        try:
            by_metric[metric.strip()] = float(value)
        except ValueError as error:
            raise GateRulesError(f"--margin {told}: give metric=number, as silence_preservation=0.03") from error
        if not equals:
            raise GateRulesError(f"--margin {told}: give metric=number, as silence_preservation=0.03")
    if isinstance(named, dict):
        table["margins"] = {
            metric: rule if isinstance(rule, dict) else {"margin": rule} for metric, rule in by_metric.items()
        }
    if test is not None:
        table["test"] = test
    try:
        return GateRules.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise GateRulesError(
            f"{where}: {key}: {first['msg']} (known keys: {', '.join(GateRules.model_fields)})"
        ) from error
