"""How every stage's asset is declared: key, group, code version and description from one call."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dagster as dg

from duplex_bench.lib.without_keys import without_keys
from duplex_bench.records.items import Track
from duplex_bench.stages import code_versions

Declared = Callable[[Callable[..., Any]], dg.AssetsDefinition]


def key_of(group: str, name: str) -> dg.AssetKey:
    """Asset keys are ``[group, name]``."""
    return dg.AssetKey([group, name])


def stage_asset(
    group: Track,
    name: str,
    description: str,
    *,
    kind: str,
    ins: Sequence[str] = (),
    other_ins: Mapping[str, dg.AssetKey] | None = None,
    after: Sequence[str] = (),
    partitions: dg.PartitionsDefinition[str] | None = None,
) -> Declared:
    """Declare a stage of a track.

    Args:
        group: the track.
        name: of the asset, as in ``stages.code_versions``.
        description: one sentence for the Dagster UI.
        kind: what it holds: table, audio, figure, ...
        ins: names of assets of the same group whose tables it is given.
        other_ins: the same of other groups, by argument.
        after: assets of the group that it reads by itself.
        partitions: systems, for what belongs to one system.
    """
    wanted = {each: key_of(group, each) for each in ins} | dict(other_ins or {})
    declared = dg.asset(
        key=key_of(group, name),
        group_name=group,
        code_version=code_versions.of(group, name),
        description=description,
        kinds={kind},
        ins={argument: dg.AssetIn(key) for argument, key in wanted.items()},
        deps=[key_of(group, each) for each in after],
        partitions_def=partitions,
    )
    return lambda function: declared(without_keys(function))


def stage_out(group: Track, name: str, description: str, *, kind: str) -> dg.AssetOut:
    """Declare one of several tables that a stage writes at once."""
    return dg.AssetOut(
        key=key_of(group, name),
        group_name=group,
        code_version=code_versions.of(group, name),
        description=description,
        kinds={kind},
    )
