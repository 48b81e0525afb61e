"""Scenarios written by a text model: work by item, resumed, with the drafts' rejections counted."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from duplex_bench.multiparty.llm.drafts import Draft
from duplex_bench.multiparty.llm.engine import Written, distinct, scenario_key, write_scenario
from duplex_bench.multiparty.llm.plan import plan_scenario, writing_request
from duplex_bench.multiparty.scripts import Pair
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.serial import from_json, to_json
from duplex_bench.textmodels.model import TextModel


@dataclass(frozen=True, slots=True)
class WrittenScenarios:
    """Accepted pairs, why others were left out, and counts of drafts."""

    pairs: list[Pair]
    refused: list[str]
    counts: dict[str, int | float | str]


def written_scenarios(workspace: Workspace) -> WrittenScenarios:
    """Every scenario that the profile asks for; what was written before is not written again.

    A scenario whose calls failed (no connection, no budget) is named among the refused and tried by the next run.

    Raises:
        ValueError: the profile has no ``multiparty.llm``, there is no key though a call is needed, or nothing came out.
    """
    settings = workspace.profile.multiparty.llm
    if settings is None:
        raise ValueError("multiparty.engine is llm: add a table multiparty.llm with a model (vendor, model)")
    calls = workspace.profile.text_calls
    with TextModel(settings.model, workspace.store, calls=calls, role="script writer") as model:
        keys = [scenario_key(model, settings, index) for index in range(settings.n_pairs)]
        ledger = workspace.ledger("multiparty/llm_scripts")
        finished = ledger.finished()
        waiting = [index for index, key in enumerate(keys) if key not in finished]
        if any(model.needs_call(writing_request(plan_scenario(settings, index), ()), Draft) for index in waiting):
            model.check_key()

        def write(argument: int) -> str:
            return to_json(write_scenario(model, settings, argument))

        tasks = [Task(key, f"scenario {index}", index) for index, key in enumerate(keys)]
        with ThreadPoolExecutor(calls.concurrency) as threads:
            done = resume(ledger, "scripts by a text model", tasks, write, executor=threads)
    written = [from_json(Written, done.payloads[key]) for key in keys if key in done.payloads]
    pairs, refused = distinct(written, settings)
    failed = [f"{plan_scenario(settings, keys.index(key)).scenario_id}: {why}" for key, why in done.failed.items()]
    if not pairs:
        told = "\n".join([*failed, *refused][:10])
        raise ValueError(f"{settings.model.name} wrote no acceptable scenario of {settings.n_pairs}:\n{told}")
    counts: dict[str, int | float | str] = {
        "engine": settings.model.name,
        "drafts": sum(one.drafts for one in written),
        "accepted_at_first": sum(one.pair is not None and one.drafts == 1 for one in written),
        "given_up": sum(one.pair is None for one in written),
        "too_alike": len(refused) - sum(one.pair is None for one in written),
        "failed": len(failed),
    }
    return WrittenScenarios(pairs, [*refused, *failed], counts)
