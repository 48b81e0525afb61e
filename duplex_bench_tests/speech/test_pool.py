import os

import pytest

from duplex_bench.speech.pool import map_in_processes

pytestmark = pytest.mark.process


def _square_or_fail(number):
    if number == 3:
        raise LookupError("three is not known")
    if number == 5:
        os._exit(9)
    return number * number


def _threads(_):
    return os.environ["OMP_NUM_THREADS"], os.getpid()


def test_results_in_order_and_a_bad_item_does_not_stop_the_rest():
    seen = {}
    results = map_in_processes(_square_or_fail, [1, 2, 3, 4, 5, 6], 2, on_done=seen.__setitem__)
    assert [result.value for result in results] == [1, 4, None, 16, None, 36]
    assert results[2].error == "LookupError: three is not known"
    assert "died" in results[4].error
    assert [seen[position] for position in range(6)] == results


def test_workers_have_one_thread_and_this_process_keeps_its_own(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    results = map_in_processes(_threads, [0, 1], 2)
    assert {result.value[0] for result in results} == {"1"}
    assert os.getpid() not in {result.value[1] for result in results}
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_one_process_is_this_one():
    results = map_in_processes(_square_or_fail, [2, 3], 1)
    assert results[0].value == 4
    assert results[1].error.startswith("LookupError")


def test_no_process_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        map_in_processes(_square_or_fail, [1], 0)
