"""The report over both tracks, from stored tables."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from duplex_bench.multiparty.transcript_reference import RULE_SYSTEM, SYSTEM
from duplex_bench.records import tables as schemas
from duplex_bench.records.items import Track
from duplex_bench.reporting.analysis import MultipartyAnalysis
from duplex_bench.reporting.estimates import AggregateSettings
from duplex_bench.reporting.inputs import ReportInputs, SiteSettings, SweepPlace, SystemInfo, SystemType, TrackTables
from duplex_bench.reporting.site import build_site
from duplex_bench.reporting.tables import cast_quality, funnel
from duplex_bench.stages import conversation, report_context, scoring
from duplex_bench.stages.annotator_tables import annotator_tables
from duplex_bench.stages.boundary_error import boundary_error_tables
from duplex_bench.stages.conversation_sensitivity import sensitivity_tables
from duplex_bench.stages.human_windows import human_tables
from duplex_bench.stages.prediction import pause_prediction
from duplex_bench.stages.profile import Profile, StatisticsSettings
from duplex_bench.stages.protocol_waits import protocol_waits
from duplex_bench.stages.recall_ceiling import HEARD_CEILING, TEXT_CEILING, ceiling_by_history
from duplex_bench.stages.recall_scorers import second_judge_table
from duplex_bench.stages.repeats import repeat_variance
from duplex_bench.stages.report_costs import cost_tables
from duplex_bench.stages.report_reviews import label_review
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.row_order import row_key
from duplex_bench.stages.second_judge import judges_agree
from duplex_bench.stages.stand_ins import stand_ins_of
from duplex_bench.stages.summary import joined, stored_figures, stored_tables
from duplex_bench.stages.validation import validation_tables
from duplex_bench.stages.wordless import wordless_audio
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.provenance import provenance
from duplex_bench.systems.card import SystemCard

PER_SYSTEM: Mapping[str, schemas.Schema] = {
    "rollouts": schemas.ROLLOUTS,
    "activity": schemas.ACTIVITY,
    "words": schemas.WORDS,
    "judgements": schemas.JUDGEMENTS,
    "measurements": schemas.MEASUREMENTS,
}
BOUNDS = tuple(
    SystemInfo(name=name, title=title, family="bound", group="Bounds", reference=True, summary=summary)
    for name, title, summary in (
        (conversation.PERSON, "The person", "What the person did, by construction."),
        (conversation.CEILING, "Ceiling", "The person's own reply through the recogniser."),
        (conversation.FLOOR, "Floor", "The person's reply at another turn end."),
        (TEXT_CEILING, "Text-model ceiling", "A text model that reads the history and answers the recall question."),
        (
            HEARD_CEILING,
            "Text-model ceiling, recognised",
            "The same text model reading what the recogniser heard of the history.",
        ),
    )
)


READERS = tuple(
    SystemInfo(name=name, title=title, family="text", group="Transcript reference", reference=True, summary=summary)
    for name, title, summary in (
        (SYSTEM, "Transcript reference", "A text model that reads the transcript instead of hearing the scene."),
        (
            RULE_SYSTEM,
            "Transcript reference (rule stand-in)",
            "A rule that reads the transcript; its cues are those of the scripts, so it says nothing about models.",
        ),
    )
)


# In the order of the report: systems of one type stand together.
_GROUPS: Final[Mapping[SystemType | None, str]] = {
    "full_duplex": "Full-duplex",
    "endpointer": "Endpointer-dependent",
    None: "Systems",
}


def track_tables(track: Track, stored: Mapping[str, Any], profile: Profile | None = None) -> TrackTables:
    """Every stored table of one track by name; those of ``PER_SYSTEM`` come as one table a system and are joined.

    ``profile`` says what the statistics were made with; None: the defaults.
    """
    analysis = MultipartyAnalysis() if profile is None else profile.multiparty.analysis
    chosen = StatisticsSettings() if profile is None else profile.statistics
    if track == "conversation":
        # What multiparty.analysis says is of the other track: here every interval is of one level.
        analysis = dataclasses.replace(analysis, level=chosen.level, n_resamples=chosen.n_resamples)
    return TrackTables(
        track=track,
        items=stored["items"],
        statistics=stored["statistics"],
        comparisons=stored["comparisons"],
        cards=scoring.metric_cards(track),
        analysis=analysis,
        aggregation=AggregateSettings(n_resamples=chosen.n_resamples, level=chosen.level),
        **{name: joined(stored[name], schema) for name, schema in PER_SYSTEM.items()},
    )


def system_infos(cards: Sequence[SystemCard]) -> tuple[SystemInfo, ...]:
    """What the report says about each system, reference policies last, then what stands beside them."""
    order = list(_GROUPS)
    infos = sorted(
        (_info(card) for card in cards), key=lambda info: (info.reference, order.index(info.type), row_key(info.name))
    )
    return (*infos, *READERS, *BOUNDS)


def _type(card: SystemCard) -> SystemType | None:
    # With an endpointer fresh onset and takeovers depend on its silence, so that such systems stand apart (design 6).
    if card.endpointer_dependent or card.family == "hosted":
        return "endpointer"
    return "full_duplex" if card.family == "full_duplex" else None


def _info(card: SystemCard) -> SystemInfo:
    reference = card.family == "policy"
    decides = _type(card)
    return SystemInfo(
        name=card.name,
        title=card.title,
        family=card.family,
        group="Reference policies" if reference else _GROUPS[decides],
        reference=reference,
        type=decides,
        summary=card.notes,
        licence=card.licence,
        stands_in_for=card.stands_in_for,
        sweep=None if card.sweep is None else SweepPlace(card.sweep.name, card.sweep.at, card.sweep.label),
        card=report_context.card_facts(card),
    )


def facts(workspace: Workspace) -> dict[str, str]:
    """Provenance as flat text."""
    told = provenance(workspace.profile.name, workspace.profile.digest)
    found = {field.name: getattr(told, field.name) for field in dataclasses.fields(told) if field.name != "packages"}
    return {
        **{name: value or "none" for name, value in found.items()},
        **{f"package {name}": version for name, version in told.packages.items()},
        "licence of outputs": "machine-generated; synthetic speech and text of the embedded models",
    }


def report(
    workspace: Workspace,
    tracks: Sequence[TrackTables],
    cards: Sequence[SystemCard],
    figures: Mapping[str, pl.DataFrame],
    candidates: pl.DataFrame | None,
    voices: pl.DataFrame | None,
    out: Path | None = None,
    more: Sequence[pl.DataFrame] = (),
    settings: SiteSettings | None = None,
) -> StageResult:
    """Build the static report; one row per track with what it shows. ``more`` are further stored tables."""
    extra = [table for frame in more for table in stored_tables(workspace, frame)]
    extra += validation_tables(workspace)
    if candidates is not None:
        extra.append(funnel(conversation.funnel_frame(workspace, candidates)))
    if voices is not None:
        extra.append(cast_quality(voices))
    notes = list(_notes(tracks))
    for track in tracks:
        said, note = human_tables(workspace, track)
        extra += said
        notes += [note] if note else []
        predicted = pause_prediction(track, cards) if track.track == "conversation" else None
        if predicted is not None:
            extra.append(predicted)
        extra += sensitivity_tables(track) + boundary_error_tables(workspace, track)
        for made in (
            judges_agree(workspace, track),
            second_judge_table(workspace, track),
            protocol_waits(workspace, track, cards),
            wordless_audio(workspace, track),
            repeat_variance(workspace, track),
            ceiling_by_history(workspace, track),
        ):
            if made is not None:
                extra.append(made)
    reviewed = label_review(workspace)
    if reviewed is not None:
        extra.append(reviewed)
    if any(track.track == "conversation" for track in tracks):
        extra += annotator_tables(workspace)
    extra += cost_tables(workspace, tracks, cards)
    run_id = digest_value("report", workspace.profile.digest, [table.statistics.write_json() for table in tracks])[:12]
    inputs = ReportInputs(
        title="duplex_bench report",
        run_id=run_id,
        profile=workspace.profile.name,
        tracks=tuple(tracks),
        systems=_present(_examined(workspace, system_infos(cards), cards), tracks),
        blobs=workspace.blobs,
        provenance=facts(workspace),
        stand_ins=stand_ins_of(workspace.profile),
        extra_tables=tuple(extra),
        notes=tuple(notes),
        warnings=report_context.warnings(workspace, tracks, cards),
        unmeasured=report_context.unmeasured(workspace, tracks),
        settings=settings or SiteSettings(),
    )
    drawn = {name: stored_figures(workspace, frame) for name, frame in figures.items()}
    index = build_site(inputs, out or workspace.report_folder, drawn)
    rows = [
        {
            "track": table.track,
            "items": table.items.height,
            "systems": table.rollouts["system"].n_unique(),
            "rollouts": table.rollouts.height,
            "scores": table.measurements.height,
            "run_id": run_id,
        }
        for table in tracks
    ]
    return StageResult(pl.DataFrame(rows), {"report": str(index), "run_id": run_id})


def _examined(workspace: Workspace, infos: Sequence[SystemInfo], cards: Sequence[SystemCard]) -> list[SystemInfo]:
    levels = {card.name: report_context.conformance(workspace, card) for card in cards}
    return [dataclasses.replace(info, conformance=levels.get(info.name, "")) for info in infos]


def _present(infos: Sequence[SystemInfo], tracks: Sequence[TrackTables]) -> tuple[SystemInfo, ...]:
    """Those that were run, or have an estimate: a card alone is no result, and gets no page."""
    named = {name for track in tracks for name in track.rollouts["system"]}
    named |= {name for track in tracks for name in track.statistics["system"]}
    return tuple(info for info in infos if info.name in named)


def _notes(tracks: Sequence[TrackTables]) -> tuple[str, ...]:
    units = {"multiparty": "scenarios", "conversation": "conversations"}
    counted = " and ".join(f"{table.items['cluster'].n_unique()} {units[table.track]}" for table in tracks)
    return (f"Numbers rest on {counted}. The tables of pairs give the smallest difference that this many can detect.",)
