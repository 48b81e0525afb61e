"""Edits: small steps from one state of a copy to the next, each of which can be replayed and told to a person."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from duplex_bench.conversation.label_types import LabelKind, Speaker
from duplex_bench.review.errors import ReviewInputError
from duplex_bench.review.regions import Region, check_regions, ordered

Name = Annotated[str, Field(min_length=1, max_length=64)]
Seconds = Annotated[float, Field(allow_inf_nan=False)]
FlagVerdict = Literal["open", "kept", "changed"]


class RegionData(BaseModel):
    """A region as the page sends it."""

    model_config = ConfigDict(extra="forbid")

    region_id: Name
    speaker: Speaker
    kind: LabelKind
    start_s: Seconds
    end_s: Seconds

    def region(self) -> Region:
        """As copies keep it."""
        return Region(self.region_id, self.speaker, self.kind, self.start_s, self.end_s)


class Add(BaseModel):
    """A new region."""

    model_config = ConfigDict(extra="forbid")
    op: Literal["add"]
    region: RegionData


class Remove(BaseModel):
    """A region gone."""

    model_config = ConfigDict(extra="forbid")
    op: Literal["remove"]
    region_id: Name


class Change(BaseModel):
    """A region with other times, kind or speaker."""

    model_config = ConfigDict(extra="forbid")
    op: Literal["change"]
    region: RegionData


class Mark(BaseModel):
    """What became of a flag."""

    model_config = ConfigDict(extra="forbid")
    op: Literal["flag"]
    flag: Annotated[str, Field(min_length=1, max_length=200)]
    verdict: FlagVerdict


Operation = Annotated[Add | Remove | Change | Mark, Field(discriminator="op")]


@dataclass(frozen=True, slots=True)
class CopyState:
    """The regions of one copy, in order of time, and what became of each flag that was looked at."""

    regions: tuple[Region, ...] = ()
    flags: Mapping[str, FlagVerdict] = field(default_factory=dict)

    def plain(self) -> dict[str, object]:
        """As JSON data."""
        return {"regions": [asdict(region) for region in self.regions], "flags": dict(self.flags)}


def apply(state: CopyState, operations: Sequence[Operation], duration_s: float) -> CopyState:
    """The state after all of ``operations``; the rules of regions hold after the last, not in between.

    Raises:
        ReviewInputError: an operation on a region that is not there, or a result that breaks a rule.
    """
    regions = {region.region_id: region for region in state.regions}
    flags = dict(state.flags)
    for operation in operations:
        if isinstance(operation, Add):
            if operation.region.region_id in regions:
                raise ReviewInputError(f"region {operation.region.region_id!r} is there already; reload the session")
            regions[operation.region.region_id] = operation.region.region()
        elif isinstance(operation, Change):
            _known(regions, operation.region.region_id)
            regions[operation.region.region_id] = operation.region.region()
        elif isinstance(operation, Remove):
            del regions[_known(regions, operation.region_id)]
        elif operation.verdict == "open":
            flags.pop(operation.flag, None)
        else:
            flags[operation.flag] = operation.verdict
    result = ordered(regions.values())
    check_regions(result, duration_s, "this edit")
    return CopyState(tuple(result), flags)


def _known(regions: Mapping[str, Region], region_id: str) -> str:
    if region_id not in regions:
        raise ReviewInputError(f"region {region_id!r} is no longer there; someone removed it")
    return region_id
