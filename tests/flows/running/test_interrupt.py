"""A signal ends a process and all that it started, with one line; so does a server that ended."""

import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from bandana.flows.running.interrupt import MESSAGE, server_ended
from bandana.flows.running.processes import is_running

_BUSY = """
import subprocess, sys, time
from bandana.flows.running.interrupt import stop_at_once_on_interrupt
stop_at_once_on_interrupt(3)
child = subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(1000)"])
while True:
    pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what a process started is found in /proc")
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_busy_process_and_its_children_at_once(sign):
    busy = subprocess.Popen([sys.executable, "-c", _BUSY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert busy.stdout.readline() == "1\n"
        busy.send_signal(sign)
        out, err = busy.communicate(timeout=60)  # the child has the same pipes: they are closed when it has ended
        assert (busy.returncode, out) == (3, "")
        assert err == f"\nerror: {MESSAGE}\n"
    finally:
        busy.kill()


@pytest.mark.parametrize(("free", "told"), [(1000, "the disk is full ("), (1 << 30, "the server said this; finished work")])
def test_a_server_that_ended_is_explained(tmp_path, monkeypatch, free, told):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    said = server_ended("the server said this", tmp_path)
    assert said.startswith(told)
    assert "finished work is kept" in said
    assert "run the same command again" in said


def test_a_process_that_ends_while_it_is_looked_at_runs_no_longer():
    def status():
        raise psutil.NoSuchProcess(1)

    assert not is_running(SimpleNamespace(is_running=lambda: True, status=status))
