"""What a worker said last is told, also where it is read only after the worker has ended."""

import threading

import pytest

from duplex_bench.systems.worker_output import WorkerOutput

pytestmark = pytest.mark.unit


class ReadLate:
    """A pipe whose reader is kept from it for a while, as by other processes."""

    def __init__(self):
        self.left = [b"CUDA error", b""]

    def read1(self, _size):
        threading.Event().wait(0.5)
        return self.left.pop(0)

    def close(self):
        pass


def test_the_last_words_of_a_worker_that_has_ended_are_waited_for():
    output = WorkerOutput(ReadLate())
    assert output.tail(ended=True) == "CUDA error"
    output.close()
