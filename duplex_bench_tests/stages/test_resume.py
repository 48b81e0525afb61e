"""Whatever is edited, what is computed again is exactly what a comparison by hand says, and nothing stale survives.

A state holds everything a person may edit. Edits are made one after another in a random order; after each, the whole
graph is run in the workspace that has run since the beginning, and in a new one. The comparison by hand takes the
tables of the new one: a piece of work is due if its inputs, written out in full, were never seen before.
"""

import dataclasses
import itertools
import json
import random
from dataclasses import dataclass, field, replace

import polars as pl
import pytest

from duplex_bench.conversation import cards as conversation_cards
from duplex_bench.judging import embedded_judge
from duplex_bench.judging.rubrics import rubric
from duplex_bench.multiparty import cards as multiparty_cards
from duplex_bench.records.metric_card import MetricCard
from duplex_bench.stages import conversation, evaluation, judges, multiparty, scoring, summary
from duplex_bench.stages.items import items_frame, items_of
from duplex_bench.stages.measured import measured
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.frames import content_digest
from duplex_bench.systems.card import SystemCard

pytestmark = pytest.mark.unit

TRACKS = ("multiparty", "conversation")
STAGES = ("rollouts", "activity", "words", "judgements", "measurements")
# What a card says about a system, apart from what makes it run.
TOLD_ONLY = {
    "name", "title", "family", "uses_cache", "provider", "max_inflight", "endpointer_dependent", "tracks", "licence",
    "links", "stands_in_for", "omitted", "notes",
}  # fmt: skip


@dataclass
class State:
    """Everything that an edit may change."""

    profile: object
    cards: dict[str, SystemCard]
    shifts: list[tuple[str, int, str, float]] = field(default_factory=list)
    reviewed: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    rubric_edits: int = 0
    judge_edits: int = 0
    metric_edits: dict[str, int] = field(default_factory=dict)


def policy(name, adapter, **settings):
    return SystemCard(name=name, title=name, family="policy", adapter=adapter, settings=settings, licence="test")


@pytest.fixture
def start(quick_engines, small_workspace, tmp_path):
    profile = small_workspace(tmp_path / "unused").profile
    cards = {
        "silent": policy("silent", "duplex_bench.systems.adapters.never_speak:create"),
        "early": policy("early", quick_engines, at_s=[2.0, 9.0, 20.0, 31.0]),
    }
    return State(profile, cards)


# Edits, each by a random generator.


def moved_label(state, rng):
    state.shifts.append((rng.choice(["turn", "pause"]), rng.randrange(50), rng.choice(["start_s", "end_s"]),
                         rng.choice([-0.06, -0.03, 0.04])))  # fmt: skip
    state.reviewed = True


def withdrawn_review(state, _rng):
    state.reviewed = not state.reviewed


def identity_prompt(state, rng):
    state.prompts[rng.choice(["pause", "turn_end"])] = f"You are a gardener, {rng.randrange(1000)} years old."


def card_text(state, rng):
    name = rng.choice(sorted(state.cards))
    state.cards[name] = state.cards[name].model_copy(update={"notes": f"note {rng.random()}", "licence": "CC0"})


def card_settings(state, rng):
    state.cards["early"] = state.cards["early"].model_copy(update={"settings": {"at_s": [rng.uniform(1, 6), 21.5]}})


def card_epoch(state, rng):
    name = rng.choice(sorted(state.cards))
    state.cards[name] = state.cards[name].model_copy(update={"epoch": state.cards[name].epoch + 1})


def rubric_text(state, _rng):
    state.rubric_edits += 1


def judge_version(state, _rng):
    state.judge_edits += 1


def metric_version(state, rng):
    metric = rng.choice(["response_presence", "silence_preservation", "pause_silent", "turn_end_latency"])
    state.metric_edits[metric] = state.metric_edits.get(metric, 0) + 1


def gate_settings(state, rng):
    # The noise lies at 0.2: a threshold of 0.3 hears nothing.
    gate = replace(state.profile.gate, threshold=rng.choice([0.012, 0.02, 0.3]))
    state.profile = replace(state.profile, gate=gate)


def scoring_rules(state, rng):
    track = state.profile.multiparty
    rules = replace(track.scoring, deadline_s=rng.choice([1.5, 1.8]))
    state.profile = replace(state.profile, multiparty=replace(track, scoring=rules))


def pause_protocol(state, rng):
    protocols = replace(state.profile.rollout.protocols, pause_silence_s=rng.choice([2.0, 2.5, 4.0]))
    state.profile = replace(state.profile, rollout=replace(state.profile.rollout, protocols=protocols))


def nothing(_state, _rng):
    pass


EDITS = (
    moved_label, moved_label, withdrawn_review, identity_prompt, card_text, card_settings, card_epoch, rubric_text,
    judge_version, metric_version, metric_version, gate_settings, scoring_rules, pause_protocol, nothing,
)  # fmt: skip


# The graph, run as it stands.


def with_versions(cards, edits):
    return tuple(replace(card, version=card.version + edits.get(card.id, 0)) for card in cards)


@pytest.fixture
def in_force(monkeypatch):
    """Puts what a state says of rubrics, judge and metrics in force."""
    of_rubric, of_multiparty, of_points = rubric, multiparty_cards.CARDS, conversation_cards.POINT_CARDS
    strict = embedded_judge.STRICT_VERSION

    def put(state):
        def edited(rubric_id):
            found = of_rubric(rubric_id)
            return replace(found, sha256=digest_value(found.sha256, state.rubric_edits))

        monkeypatch.setattr(judges, "rubric", edited)
        monkeypatch.setattr(embedded_judge, "STRICT_VERSION", f"{strict}+{state.judge_edits}")
        cards: dict[str, MetricCard] = {}
        for module, name, known in (
            (multiparty_cards, "CARDS", of_multiparty),
            (conversation_cards, "POINT_CARDS", of_points),
        ):
            versions = with_versions(known, state.metric_edits)
            monkeypatch.setattr(module, name, versions)
            cards |= {card.id: card for card in versions}
        for by_id in (multiparty_cards.CARD_BY_ID, conversation_cards._BY_ID):
            for metric in by_id:
                if metric in cards:
                    monkeypatch.setitem(by_id, metric, cards[metric])

    return put


def write_reviews(workspace, engine, state):
    """Reviews that move the labels that the state names, in the first session."""
    workspace.reviews_folder.mkdir(parents=True, exist_ok=True)
    session = min(engine["session_id"].unique())
    rows = engine.filter(pl.col("session_id") == session).select("speaker", "kind", "start_s", "end_s").to_dicts()
    for kind, number, edge, by_s in state.shifts:
        of_kind = [row for row in rows if row["kind"] == kind]
        row = of_kind[number % len(of_kind)]
        row[edge] = round(max(0.0, row[edge] + by_s), 4)
    told = {"session_id": session, "status": "approved" if state.reviewed else "draft", "approved_by": "me",
            "labels": rows}  # fmt: skip
    (workspace.reviews_folder / "session.json").write_text(json.dumps(told))


def with_prompts(items, prompts):
    return items_frame(
        replace(item, stimulus=replace(item.stimulus, identity_prompt=prompts.get(item.stimulus.protocol)))
        for item in items_of(items).values()
    )


def items_for(workspace, state):
    scenarios = multiparty.scenarios(workspace).frame
    pairs = multiparty.pairs(workspace, scenarios).frame
    speech = multiparty.utterance_speech(workspace, pairs).frame
    scenes = multiparty.scenes(workspace, pairs, speech).frame
    sessions = conversation.lively_sessions(workspace).frame
    filled = conversation.gap_fill(workspace, sessions).frame
    engine = conversation.engine_labels(workspace, sessions, filled).frame
    write_reviews(workspace, engine, state)
    labels = conversation.labels(workspace, engine).frame
    candidates = conversation.candidates(workspace, sessions, filled, labels).frame
    points = conversation.points(workspace, candidates).frame
    items = conversation.items(workspace, sessions, filled, labels, points).frame
    return {"multiparty": multiparty.items(workspace, pairs, scenes).frame,
            "conversation": with_prompts(items, state.prompts)}  # fmt: skip


@dataclass
class Ran:
    """Tables and counts of one run of the graph; keys are (track, stage) or (track, stage, system)."""

    tables: dict[tuple[str, ...], pl.DataFrame]
    counts: dict[tuple[str, ...], dict]


def run(workspace, state):
    workspace = replace(workspace, profile=state.profile)
    ran = Ran({}, {})
    items = items_for(workspace, state)
    for track in TRACKS:
        ran.tables[track, "items"] = items[track]
        scores = {}
        for name, card in state.cards.items():
            rolled = run_rollouts(workspace, track, items[track], card)
            heard = evaluation.activity(workspace, track, rolled.frame, name)
            said = evaluation.words(workspace, track, rolled.frame, name)
            given = (items[track], rolled.frame, heard.frame, said.frame)
            judged = evaluation.judgements(workspace, track, *given, name)
            scored = evaluation.measurements(workspace, track, *given, judged.frame, name)
            for stage, result in zip(STAGES, (rolled, heard, said, judged, scored), strict=True):
                ran.tables[track, stage, name] = result.frame
                ran.counts[track, stage, name] = result.counts
            scores[name] = scored.frame
        estimates, comparisons = summary.aggregate(workspace, track, scores, None)
        ran.tables[track, "statistics"], ran.tables[track, "comparisons"] = estimates.frame, comparisons.frame
    return ran


# The comparison by hand: what each piece of work depends on, written out.


def plain(value):
    return json.dumps(value, sort_keys=True, default=dataclasses.asdict)


def heard_and_read(stimulus_json):
    """A stimulus without where its audio is stored."""
    told = json.loads(stimulus_json)
    for name in ("live", "history_user", "history_assistant"):
        if told[name] is not None:
            told[name] = (told[name]["content"], told[name]["sample_rate_hz"])
    return told


def listened_for(protocol, settings):
    if protocol == "pause":
        return (settings.pause_silence_s, settings.pause_extra_silence_s)
    if protocol == "multiparty":
        return (settings.multiparty_tail_s,)
    return (settings.turn_end_stop_after_silence_s, settings.turn_end_cap_s)


def inputs_of_work(ran, state):
    """Inputs of every piece of work that a state asks for, in full, by stage and system."""
    asked = {}
    for track, (name, card) in itertools.product(TRACKS, state.cards.items()):
        items = {row["item_id"]: row for row in ran.tables[track, "items"].iter_rows(named=True)}
        rows = {stage: ran.tables[track, stage, name] for stage in STAGES}
        activity = {row["rollout_key"]: row for row in rows["activity"].iter_rows(named=True)}
        words = {row["rollout_key"]: row for row in rows["words"].iter_rows(named=True)}
        runs = {key: value for key, value in card.model_dump(mode="json").items() if key not in TOLD_ONLY}
        by_stage = {stage: set() for stage in STAGES}
        for row in rows["rollouts"].iter_rows(named=True):
            item = items[row["item_id"]]
            listened = listened_for(item["protocol"], state.profile.rollout.protocols)
            rolled = (runs, heard_and_read(item["stimulus"]), listened, row["repeat"])
            by_stage["rollouts"].add(plain(rolled))
            by_stage["activity"].add(plain((rolled, row["listener_audio"], state.profile.gate)))
            by_stage["words"].add(plain((rolled, row["listener_audio"])))
            verdicts = rows["judgements"].filter(
                (pl.col("rollout_key") == row["rollout_key"]) & (pl.col("item_id") == row["item_id"])
            )
            settings = (
                (state.profile.multiparty.scoring, state.profile.multiparty.detector)
                if track == "multiparty"
                else (state.profile.conversation.scoring, state.profile.gate)
            )
            versions = {card.id: card.version for card in scoring.metric_cards(track)}
            found = activity[row["rollout_key"]]
            by_stage["measurements"].add(
                plain(
                    (
                        versions, settings, item["item_id"], item["condition"], item["reference"], row["outcome"],
                        row["reason"], row["timeline_s"], found["gate_s"], found["vad_s"],
                        words[row["rollout_key"]]["words"],
                        verdicts.select("window_id", "rubric", "rubric_version", "judge", "verdict", "reason", "raw")
                        .sort("window_id", "rubric").rows(),
                    )
                )
            )  # fmt: skip
        for one in measured(ran.tables[track, "items"], rows["rollouts"], rows["activity"], rows["words"]):
            for question in scoring.questions(track, one, state.profile):
                judge = (state.judge_edits if question.rubric == "answer_correctness" else 0, state.rubric_edits)
                by_stage["judgements"].add(plain((question.rubric, question.fields, judge)))
        asked |= {(track, stage, name): work for stage, work in by_stage.items()}
    return asked


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))])
def test_edits_in_any_order(start, in_force, small_workspace, tmp_path, seed):
    rng = random.Random(seed)
    order = [nothing, *rng.sample(EDITS, len(EDITS))]
    kept = small_workspace(tmp_path / "kept")
    seen = {}
    state = start
    for number, edit in enumerate(order):
        edit(state, rng)
        in_force(state)
        resumed = run(kept, state)
        new = small_workspace(tmp_path / f"new-{number}")
        new.data.mkdir()
        # The generated recordings are input, not result: no edit here touches them.
        new.corpora_folder.symlink_to(kept.corpora_folder)
        scratch = run(new, state)
        asked = inputs_of_work(scratch, state)
        where = f"edit {number}, {edit.__name__}"
        for key, work in asked.items():
            counts = resumed.counts[key]
            due = work - seen.setdefault(key, set())
            assert (counts["computed"], counts["reused"]) == (len(due), len(work) - len(due)), f"{where}: {key}"
            assert counts["failed"] == 0
            seen[key] |= work
        for key, table in scratch.tables.items():
            assert content_digest(resumed.tables[key]) == content_digest(table), f"{where}: {key}"
