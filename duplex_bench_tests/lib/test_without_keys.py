"""A stage that fails with a key in its error leaves none in Dagster's event log; other errors stay as they are."""

import dagster as dg
import pytest

from duplex_bench.lib.stage_asset import stage_asset

pytestmark = pytest.mark.dagster

CANARY = "sk-canary-0123456789"


@pytest.mark.parametrize(("said", "kept"), [(CANARY, "[SOME_API_KEY]"), ("nothing secret", "nothing secret")])
def test_an_error_of_a_stage_names_the_variable_instead_of_the_key(said, kept, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", CANARY)

    @stage_asset("multiparty", "scenarios", "Fails.", kind="table")
    def scenarios():
        try:
            raise KeyError(said)
        except KeyError as error:
            raise ValueError(f"refused: {said}") from error

    with dg.DagsterInstance.ephemeral() as instance:
        run = dg.materialize([scenarios], instance=instance, raise_on_error=False)
        assert not run.success
        log = "".join(str(record.event_log_entry) for record in instance.get_records_for_run(run.run_id).records)
    assert CANARY not in log
    assert f"refused: {kept}" in log
