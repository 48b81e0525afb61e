"""The sensor of label reviews: stopped as shipped, acts once for each change of what is approved."""

import json

import dagster as dg
import pytest

from duplex_bench.defs.sensors import DATA_VERSION_TAG, label_review_sensor
from duplex_bench.lib.resources import WorkspaceResource

pytestmark = pytest.mark.dagster


@pytest.fixture
def look(tmp_path):
    """Ask the sensor about the reviews in a folder."""

    def ask(cursor=None):
        resource = WorkspaceResource(profile="demo", data=str(tmp_path))
        with dg.build_sensor_context(cursor=cursor, resources={"workspace": resource}) as context:
            return label_review_sensor(context)

    return ask


def review(folder, status="approved", end_s=2.0):
    labels = [{"speaker": "left", "kind": "turn", "start_s": 0.5, "end_s": end_s}]
    told = {"session_id": "s", "status": status, "approved_by": "me", "labels": labels}
    (folder / "reviews").mkdir(exist_ok=True)
    (folder / "reviews" / "s.json").write_text(json.dumps(told))


def test_it_is_shipped_stopped_and_starts_the_job_of_the_points(definitions):
    assert label_review_sensor.default_status == dg.DefaultSensorStatus.STOPPED
    assert label_review_sensor.job_name == "regenerate_points"
    assert definitions.get_sensor_def("label_review_sensor") is label_review_sensor


def test_without_reviews_nothing_is_run(look):
    first = look()
    assert not first.run_requests
    assert isinstance(look(first.cursor), dg.SkipReason)


def test_an_approved_review_is_observed_and_run_for_once(look, tmp_path):
    review(tmp_path)
    found = look()
    (request,) = found.run_requests
    (event,) = found.asset_events
    assert event.asset_key == dg.AssetKey(["conversation", "reviews"])
    assert event.tags[DATA_VERSION_TAG] == found.cursor
    assert isinstance(look(found.cursor), dg.SkipReason)
    review(tmp_path, end_s=2.5)
    assert look(found.cursor).run_requests[0].run_key != request.run_key


def test_an_unreadable_review_is_told_and_does_not_stop_the_sensor(look, tmp_path):
    review(tmp_path, end_s=0.1)
    found = look()
    assert isinstance(found, dg.SkipReason)
    assert "correct its times" in found.skip_message
