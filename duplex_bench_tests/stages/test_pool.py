"""No worker of the pool, and no process that used it, is left when the work is done."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.process

# As Dagster's default launcher starts a run: a child by multiprocessing, whose own end waits for its children.
RUN = """
    import multiprocessing, os, sys

    def run(said):
        from duplex_bench.stages.pool import pool
        pool(1).submit(abs, -3).result()
        said.send([os.getpid(), *(child.pid for child in multiprocessing.active_children())])

    if __name__ == "__main__":
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.get_context("spawn").Process(target=run, args=(theirs,))
        child.start()
        print(*ours.recv(), flush=True)
        child.join()
        sys.exit(child.exitcode)
"""


def test_a_run_that_dagster_started_ends_and_its_workers_with_it(tmp_path):
    program = tmp_path / "run.py"
    program.write_text(textwrap.dedent(RUN))
    command = [sys.executable, str(program)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        told = started.communicate(timeout=300)[0]
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 0
    run, worker = map(int, told.split())
    for pid in (run, worker):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
