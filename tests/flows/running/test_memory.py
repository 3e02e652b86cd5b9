"""Freed memory stays with the process where the C library can be told so."""

import ctypes
import subprocess
import sys

import pytest

from bandana.flows.running.memory import keep_freed

_FAULTS = """
import resource, sys
import numpy as np
from bandana.flows.running.memory import keep_freed
if sys.argv[1] == "kept":
    keep_freed()
def work():
    for _ in range(200):
        several = [np.ones(1 << 17) for _ in range(8)]  # a MiB each
        del several
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_arrays_that_come_and_go_fault_few_pages():
    faults = [
        int(subprocess.run([sys.executable, "-c", _FAULTS, how], capture_output=True, text=True, check=True).stdout)
        for how in ("kept", "as it is")
    ]
    assert faults[0] < 500
    assert faults[1] > 2 * faults[0], "the test can tell"


def test_another_library_goes_on_as_it_does(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    keep_freed()
