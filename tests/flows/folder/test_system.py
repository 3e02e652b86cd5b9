"""Systems other than Linux are refused in one line, before anything that they lack is imported."""

import subprocess
import sys

import pytest
from documentation import ROOT

import bandana
from bandana.flows.folder.system import OtherSystemError, check_system

# A Windows has neither of these modules; whatever imports one before the check would end in a traceback.
COMMAND = """
import sys
sys.platform = {platform!r}
sys.modules |= dict.fromkeys(("fcntl", "resource", "pwd", "termios"))
sys.argv = ["bandana", "demo"]
import runpy
runpy.run_module("bandana", run_name="__main__")
"""


@pytest.mark.parametrize(("platform", "name"), [("darwin", "macOS"), ("win32", "Windows"), ("freebsd14", "freebsd14")])
def test_a_command_on_another_system_ends_in_one_line(platform, name, tmp_path):
    command = [sys.executable, "-c", COMMAND.format(platform=platform)]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"error: Bandana runs on Linux, and this is {name}: use it in a Linux container or a virtual machine\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("platform", ["darwin", "win32"])
@pytest.mark.parametrize("name", ["run", "load", "audit"])
def test_a_call_from_python_on_another_system_is_refused(platform, name, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(OtherSystemError, match=r"^Bandana runs on Linux, and this is \w+: use it in .*$"):
        getattr(bandana, name)


def test_linux_is_not_refused(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    check_system()
