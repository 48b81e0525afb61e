"""A small run of both tracks with planted speech, tables stored where the graph stores them: for several tests."""

import copy
import inspect

from duplex_bench.stages import cards, conversation, evaluation, multiparty, summary
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.stages.run_record import note_run
from duplex_bench.stages.stored_run import required
from duplex_bench.stages.transcript_reference import transcript_reference
from duplex_bench.storage.frames import write_frame
from duplex_bench.systems.card import SystemCard

# The planted system speaks one second of noise at each.
AT_S = [14.5, 22.0, 27.5, 33.0, 41.0]
SPOKEN_S = 1.0


def policy(name, adapter, **settings):
    return SystemCard(name=name, title=name, family="policy", adapter=adapter, settings=settings, licence="test")


def keep(workspace, track, name, frame, system=None):
    write_frame(workspace.store, workspace.table_key((track, name), system), frame)


def run_all(workspace, track, items, chosen):
    """What the graph does with one track, tables stored where the graph stores them."""
    keep(workspace, track, "items", items)
    scores = {}
    for name, card in chosen.items():
        keep(workspace, "systems", "cards", cards.card_table(card).frame, name)
        rolled = run_rollouts(workspace, track, items, card).frame
        heard = evaluation.activity(workspace, track, rolled, name).frame
        said = evaluation.words(workspace, track, rolled, name).frame
        judged = evaluation.judgements(workspace, track, items, rolled, heard, said, name).frame
        scored = evaluation.measurements(workspace, track, items, rolled, heard, said, judged, name).frame
        for stage, frame in (("rollouts", rolled), ("activity", heard), ("words", said), ("judgements", judged),
                             ("measurements", scored)):  # fmt: skip
            keep(workspace, track, stage, frame, name)
        scores[name] = scored
    beside = None
    if track == "multiparty":
        beside = transcript_reference(workspace, required(workspace, track, "pairs"), items).measurements.frame
        keep(workspace, track, "transcript_reference", beside)
    estimates, comparisons = summary.aggregate(workspace, track, scores, beside)
    keep(workspace, track, "statistics", estimates.frame)
    keep(workspace, track, "comparisons", comparisons.frame)
    note_run(workspace)


def multiparty_items(workspace):
    scenarios = multiparty.scenarios(workspace).frame
    pairs = multiparty.pairs(workspace, scenarios).frame
    speech = multiparty.utterance_speech(workspace, pairs).frame
    scenes = multiparty.scenes(workspace, pairs, speech).frame
    keep(workspace, "multiparty", "pairs", pairs)
    keep(workspace, "multiparty", "scenes", scenes)
    return multiparty.items(workspace, pairs, scenes).frame


def conversation_items(workspace):
    sessions = conversation.lively_sessions(workspace).frame
    filled = conversation.gap_fill(workspace, sessions).frame
    labels = conversation.engine_labels(workspace, sessions, filled).frame
    candidates = conversation.candidates(workspace, sessions, filled, labels).frame
    points = conversation.points(workspace, candidates).frame
    for name, frame in (("lively_sessions", sessions), ("labels", labels), ("points", points)):
        keep(workspace, "conversation", name, frame)
    return conversation.items(workspace, sessions, filled, labels, points).frame


def three_pairs(small_workspace):
    """The small profile's table with three pairs, so that there are clusters to compare."""
    table = copy.deepcopy(inspect.signature(small_workspace).parameters["table"].default)
    table["multiparty"]["grammar"]["n_pairs"] = 3
    return table


def build(folder, small_workspace, planted):
    """The whole run in ``folder``; ``planted`` is the factory of the planted system."""
    made = small_workspace(folder, three_pairs(small_workspace))
    chosen = {
        "silent": policy("silent", "duplex_bench.systems.adapters.never_speak:create"),
        "early": policy("early", planted, at_s=AT_S),
        "twin": policy("twin", planted, at_s=AT_S),
    }
    run_all(made, "multiparty", multiparty_items(made), chosen)
    two = {name: chosen[name] for name in ("silent", "early")}
    run_all(made, "conversation", conversation_items(made), two)
