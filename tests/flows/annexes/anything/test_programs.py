"""The line protocol: commands and services that keep it, and those that do not, which end with one line and status 2."""

import json
import shutil
import socketserver
import sys
import threading

import numpy as np
import pytest
from own_cases import ROOT
from typer.testing import CliRunner

from bandana.flows.annexes.anything.outputs.calls import BrokenSubject
from bandana.flows.annexes.anything.programs import Program, named
from bandana.flows.cli import app
from bandana.flows.commands.options import FAILURE, USER_MISTAKE
from bandana.flows.texts.mistakes import SpecError

# It starts hundreds of times in an audit: `json` and `random` would take most of each start.
NOISY = """\
import sys
from _random import Random
from math import log
data = eval(sys.stdin.readline())
for line in sys.stdin:
    coins = Random(int(line))
    print(sum(data) + (log(1 - coins.random()) - log(1 - coins.random())))
"""
UNSEEDED = NOISY.replace("Random(int(line))", "Random()")
SAME_STATE = NOISY.replace("for line", "coins = Random(5)\nfor line").replace("Random(int(line))", "coins")
BROKEN = {
    "dies": ("import sys\nsys.exit('no such column')", "ended with status 1 (no such column) after 0 of 8 lines"),
    "crashes": ("import os\nos.kill(os.getpid(), 11)", "crashed (SIGSEGV) after 0 of 8 lines"),
    "dies-late": (NOISY + "sys.exit(3)", "ended with status 3 after 8 of 8 lines"),
    "silent": ("", "ended with status 0 after 0 of 8 lines: one line for each seed"),
    "stops": (NOISY + "    break", "ended with status 0 after 1 of 8 lines"),
    "twice": (NOISY + "    print(1)", "wrote more than 8 lines for 8 seeds"),
    "flood": ("while True: print(1)", "wrote more than 8 lines for 8 seeds"),
    "hangs": ("import time\nprint(1, flush=True)\ntime.sleep(600)", "wrote 1 of 8 lines and then nothing for 0.5 s"),
    "garbage": (NOISY.replace("print(", "print('count is', "), "line 1 of its output must be JSON or numbers between"),
    "blank": (NOISY.replace("print(", "print() or ("), "numbers between blanks, and is empty"),
}  # fmt: skip


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "mine.py"
        path.write_text(text)
        return sys.executable, "-S", str(path)

    return write


@pytest.fixture
def audit(tmp_path, monkeypatch):
    monkeypatch.setenv("BANDANA_DATA", str(tmp_path / "bandana_data"))

    def call(mechanism, *more, neighbor="[1]", claim="pure(epsilon=1)", replays=2000):
        given = [mechanism, "--data", "[0]", "--neighbor", neighbor, "--claim", claim]
        return CliRunner().invoke(app, ["audit-release", *given, "--replays", str(replays), *map(str, more)])

    return call


def test_answers_are_json_or_numbers(script):
    answers = ["1.5", "1 2.5", "1,2", "[1, [2]]", '"yes"', '{"a": null}', "nan", "1e999"]
    program = Program(script(f"import sys\nnext(sys.stdin)\nfor answer, _ in zip({answers!r}, sys.stdin): print(answer)"))
    found = program([0], range(8))
    assert found[:6] == [1.5, [1, 2.5], [1, 2], [1, [2]], "yes", {"a": None}]
    assert found[6] != found[6]
    assert found[7] == float("inf")


def test_the_data_come_first_and_then_the_seeds(script):
    program = Program(script("import json, sys\ndata = next(sys.stdin)\nfor n in sys.stdin: print(json.dumps([data, n]))"))
    assert program({"a": np.arange(2)}, [7, 2**31 + 1]) == [['{"a": [0, 1]}\n', "7\n"], ['{"a": [0, 1]}\n', "1\n"]]


def test_it_is_known_whether_the_same_seed_gives_the_same_output(script):
    assert Program(script(NOISY)).caller([0], [1], 0).is_repeatable
    assert not Program(script(UNSEEDED)).caller([0], [1], 0).is_repeatable


def test_seeds_that_are_ignored_are_seen_and_rare_noise_is_not_taken_for_it(script):
    seeds = range(64)
    program = Program(script(SAME_STATE))
    program([0], seeds)
    with pytest.raises(BrokenSubject, match="ignores its seeds"):
        program([0], [seed + 1 for seed in seeds])
    constant = Program(script("import sys\nnext(sys.stdin)\nfor line in sys.stdin: print(1)"))
    assert constant([0], seeds) == constant([1], seeds)


@pytest.mark.parametrize("name", BROKEN)
def test_each_mistake_is_one_line(script, name):
    text, words = BROKEN[name]
    with pytest.raises(BrokenSubject) as error:
        Program(script(text), seconds=0.5 if name == "hangs" else 60.0).caller([0], [1], 0)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_mistake_ends_the_audit_with_status_2(audit, script):
    result = audit("exec:" + " ".join(script(BROKEN["dies"][0])))
    assert result.exit_code == USER_MISTAKE
    assert (
        result.stderr
        == "error: mechanism: exec: ended with status 1 (no such column) after 0 of 8 lines: one line for each seed\n"
    )
    assert not result.stdout


@pytest.mark.slow
def test_too_much_memory_is_one_line(audit, script):
    result = audit("exec:" + " ".join(script("x = bytearray(3 * 2**30)")), "--memory", 2)
    assert result.exit_code == USER_MISTAKE
    assert "ended with status 1 (MemoryError) after 0 of 8 lines" in result.stderr


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ("exec:", "exec: needs a command"),
        ("exec:'", "No closing quotation"),
        ("exec:./no-such-program", "./no-such-program cannot be started: No such file or directory"),
        ("tcp:127.0.0.1", "must be tcp:HOST:PORT"),
        ("tcp:example.com:80", "only services of this machine are audited"),
        ("tcp:192.0.2.1:80", "only services of this machine are audited"),
        ("tcp:127.0.0.1:1", "nothing answers at 127.0.0.1:1: Connection refused"),
    ],
)
def test_what_cannot_be_reached_is_one_line(mechanism, words):
    with pytest.raises((SpecError, BrokenSubject), match=words):
        named(mechanism, 60.0)([0], [1])


@pytest.mark.slow
@pytest.mark.parametrize("first_calls", [1e-9, pytest.param(0.35, marks=pytest.mark.nightly)])
def test_a_command_is_audited(audit, script, monkeypatch, first_calls):
    """Seeds are fixed; the honest one would be refuted by other seeds with probability at most 0.05.

    Hundreds of first answers are made at night, and below by day.
    """
    monkeypatch.setattr("bandana.flows.annexes.anything.pairs.stages._FIRST_CALLS", first_calls)
    command = "exec:" + " ".join(script(NOISY))
    honest = audit(command, claim="pure(epsilon=1.5)")
    assert honest.exit_code == 0, honest.output
    assert honest.stdout.startswith("NOT REFUTED   exec:")
    broken = audit(command, "--json", claim="pure(epsilon=1)", neighbor="[3]")
    assert broken.exit_code == FAILURE
    assert json.loads(broken.stdout)["measured"] > 1


@pytest.mark.slow
def test_a_program_that_is_exact_in_its_first_answer_is_not_called_private(audit, script):
    """Among many answers of a process one is exact: who asks once sees nothing else. A bound needs 160 starts a side."""
    first = NOISY.replace("for line in sys.stdin", "for place, line in enumerate(sys.stdin)")
    first = first.replace("+ (log", "+ 10 * (place > 0) * (log")
    result = audit("exec:" + " ".join(script(first)), replays=2000)
    assert result.exit_code == FAILURE, result.output
    assert "the first call of a process" in result.stdout


class _Service(socketserver.StreamRequestHandler):
    def handle(self):
        import random

        total = sum(json.loads(self.rfile.readline()))
        for line in self.rfile:
            coins = random.Random(int(line))
            self.wfile.write(f"{total + coins.expovariate(1.0) - coins.expovariate(1.0)}\n".encode())


def test_a_service_of_this_machine_answers():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        program = named(f"tcp:127.0.0.1:{server.server_address[1]}", 60.0)
        found = program([1, 0], range(500))
        caller = program.caller([1, 0], [1, 1], 0)
        server.shutdown()
    assert len(set(found)) == 500
    assert caller.is_repeatable


@pytest.mark.skipif(shutil.which("awk") is None, reason="there is no awk")
def test_the_example_in_awk_counts():
    program = named(f"exec:awk -f {ROOT / 'examples' / 'noisy_count.awk'}", 60.0)
    seeds = range(100, 2100)
    found = program([0, 1, 1], seeds)
    assert found == program([0, 1, 1], seeds)
    assert [one - other for one, other in zip(found, program([0, 1, 0], seeds), strict=True)] == [1] * len(seeds)
    assert abs(sum(found) / len(found) - 2) < 0.3  # the standard error is 0.03
    assert len(set(found)) > 5
