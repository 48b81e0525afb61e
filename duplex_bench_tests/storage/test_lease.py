"""The lease: one run computes, another waits; a dead or silent holder is replaced, and knows that it was."""

import json
import subprocess
import sys
import threading

import pytest

from duplex_bench.storage.lease import NUMBERS_KEPT, Lease, LeaseLostError, LeaseTimes, leased
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.unit

QUICK = LeaseTimes(beat_every_s=0.02, stale_after_s=3_600.0, look_every_s=0.01)
SILENT = LeaseTimes(beat_every_s=3_600.0, stale_after_s=0.1, look_every_s=0.01)


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.process)])
def store(request, tmp_path):
    return FolderStore(tmp_path) if request.param == "folder" else request.getfixturevalue("s3")


def elsewhere(store, **changed):
    """Rewrite the holder as a process of another machine, of which nobody here can tell whether it lives."""
    key = max(store.keys("leases/stage"))
    store.put(key, json.dumps({**json.loads(store.get(key)), "began": "another/boot/1", **changed}).encode())


def test_a_second_run_waits_until_the_first_gives_it_back(store):
    order, inside, told = [], threading.Event(), []

    def second():
        assert inside.wait(120)
        with leased(store, "stage", QUICK, waiting=told.append):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with leased(store, "stage", QUICK) as lease:
        inside.set()
        while not told:
            lease.check()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert told[0].startswith("process ")
    assert len(list(store.keys("leases/stage"))) == 2


def test_many_who_want_it_at_once_hold_it_one_after_the_other(tmp_path):
    store, now, most = FolderStore(tmp_path), [], []

    def work():
        with leased(store, "stage", QUICK):
            now.append(1)
            most.append(len(now))
            threading.Event().wait(0.01)
            now.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


class HeldUp(FolderStore):
    """A store whose first create waits until others have held the lease and given it back, ``rounds`` times."""

    def __init__(self, root, rounds, then):
        super().__init__(root)
        self.rounds, self.then = rounds, then

    def put_if_absent(self, key, data):
        rounds, self.rounds = self.rounds, 0
        others = FolderStore(self.root)
        for _ in range(rounds):
            with leased(others, "stage", QUICK):
                pass
        if rounds:
            self.then(others)
        return super().put_if_absent(key, data)


@pytest.mark.parametrize("rounds", [1, 3, NUMBERS_KEPT + 3])
def test_who_was_held_up_does_not_take_a_number_that_others_have_passed(tmp_path, rounds):
    with leased(FolderStore(tmp_path), "stage", QUICK):
        pass
    holding = []

    def hold(others):
        holding.append(leased(others, "stage", QUICK))
        holding[0].__enter__()

    late = HeldUp(tmp_path, rounds, hold)
    told = []

    def give_back(who):
        told.append(who)
        holding[0].__exit__(None, None, None)

    with leased(late, "stage", QUICK, give_back) as lease:
        lease.check()
    # Somebody held it when the late one came: it waited for them.
    assert len(told) == 1


def test_few_numbers_are_kept(tmp_path):
    store = FolderStore(tmp_path)
    for _ in range(NUMBERS_KEPT + 5):
        with leased(store, "stage", QUICK):
            pass
    assert len(list(store.keys("leases/stage"))) == NUMBERS_KEPT


def test_a_killed_process_of_this_machine_is_replaced_at_once(tmp_path):
    code = (
        "import sys, threading\nfrom pathlib import Path\nfrom duplex_bench.storage.lease import leased\n"
        "from duplex_bench.storage.object_store import FolderStore\n"
        f"with leased(FolderStore(Path({str(tmp_path)!r})), 'stage'):\n"
        "    print('held', flush=True)\n    threading.Event().wait()\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.wait()
    # Far less than the 45 s after which a silent holder counts as gone.
    with leased(FolderStore(tmp_path), "stage", LeaseTimes(stale_after_s=3_600.0)) as lease:
        lease.check()


def test_a_silent_holder_elsewhere_is_replaced_and_told(store):
    with leased(store, "stage", SILENT) as first:
        elsewhere(store)
        with leased(store, "stage", SILENT) as second:
            second.check()
            first.renew()
            with pytest.raises(LeaseLostError, match="another run has taken over"):
                first.check()
            second.check()
    # The first one, which lost it, did not give back what was not its own.
    last = max(store.keys("leases/stage"))
    assert json.loads(store.get(last))["released"]


def test_a_beating_holder_elsewhere_is_waited_for(tmp_path):
    store = FolderStore(tmp_path)
    with leased(store, "stage", LeaseTimes(beat_every_s=3_600.0)):
        elsewhere(store)
        clock = iter(range(10_000))
        beats = iter(range(1, 200))
        looks = []

        class Beating(FolderStore):
            def get(self, key):
                beat = next(beats, None)
                looks.append(beat)
                if key.endswith("00000001.json"):
                    elsewhere(store, **({"beat": beat} if beat else {"released": True}))
                return super().get(key)

        # Each look is a second later, far beyond staleness in all, and the beat goes on.
        times = LeaseTimes(beat_every_s=3_600.0, stale_after_s=10.0, look_every_s=0.0)
        with leased(Beating(tmp_path), "stage", times, clock=lambda: float(next(clock))):
            assert len(looks) >= 199


def test_a_holder_that_was_stopped_looks_before_it_goes_on(tmp_path):
    store, now = FolderStore(tmp_path), [0.0]
    # No beat of the thread's in between: a minute of this clock is no time for it.
    times = LeaseTimes(beat_every_s=29.0, stale_after_s=45.0, look_every_s=0.0)
    with leased(store, "stage", times, clock=lambda: now[0]) as lease:
        elsewhere(store)
        later = iter([0.0, 0.0, 100.0, 100.0, 100.0, 100.0])
        with leased(store, "stage", times, clock=lambda: next(later, 100.0)):
            # Asleep for a minute, nothing renewed: the first check after it finds the other.
            now[0] = 60.0
            with pytest.raises(LeaseLostError):
                lease.check()


def test_a_store_that_is_away_for_a_while_loses_no_lease(tmp_path):
    class Away(FolderStore):
        away = False

        def exists(self, key):
            if self.away:
                raise OSError("away")
            return super().exists(key)

    store, now = Away(tmp_path), [0.0]
    with leased(store, "stage", LeaseTimes(beat_every_s=3_600.0, stale_after_s=40.0), clock=lambda: now[0]) as lease:
        assert isinstance(lease, Lease)
        store.away = True
        now[0] = 15.0
        lease.renew()
        lease.check()
        now[0] = 25.0
        lease.renew()
        # Past half of what others wait: nobody can say any more whether it is still held.
        with pytest.raises(LeaseLostError):
            lease.check()
        store.away = False
