"""kill -9 at twenty moments of an experiment: one rerun ends with what the uninterrupted run ends with, bit for bit.

The victims are the command itself, one of its worker processes, and Prefect's server, in turn. Moments are drawn along the
journal of an uninterrupted run, from its first event to its end, so that a slow machine is hit in the same phases.
`make test` kills one command while its pool audits, after it has played all blocks; all twenty are for the night.
"""

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from runs import events_of, family, is_alive, killable, outcome, start, workers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="victims are found in /proc"),
]

SEED, KILLS = 20261121, 20
FLOW, WORKER, SERVER = VICTIMS = ("flow", "worker", "server")
WITH_WORKERS = ("benchmark started", "block done", "audit started")
AGAIN = (("--executor", "processes", "--workers", "1"), ("--executor", "local"))  # no number depends on it
BOUND = 60  # seconds for a command whose worker or server died to end by itself, and for all that it started to be gone


class Moment(NamedTuple):
    """`delay` seconds after event number `event` of the journal, which is `phase`."""

    victim: str
    event: int
    delay: float
    phase: str


@pytest.fixture(scope="module")
def chosen(uninterrupted):
    """The twenty moments of this machine."""
    found = [*moments(events_of(uninterrupted.data), uninterrupted.ended)]
    assert len(found) == KILLS
    return found


@pytest.fixture(scope="module")
def expected(uninterrupted):
    return outcome(uninterrupted.data)


def moments(events: list[tuple[str, float]], end: float) -> Iterator[Moment]:
    """Twenty, of each victim as evenly over its part of the run as random ones can be."""
    generator = random.Random(SEED)
    times = [when for _, when in events] + [end]
    for kind, victim in enumerate(VICTIMS):
        count = len(range(kind, KILLS, len(VICTIMS)))
        spans = [i for i, (name, _) in enumerate(events) if victim != WORKER or name in WITH_WORKERS]
        lengths = [times[i + 1] - times[i] for i in spans]
        for k in range(count):
            left = (k + generator.random()) / count * sum(lengths)
            for i, length in zip(spans, lengths, strict=True):
                if left < length or i == spans[-1]:
                    yield Moment(victim, i, min(left, length), events[i][0])
                    break
                left -= length


def victim_of(process, kind: str) -> int | None:
    if kind == FLOW:
        return process.pid
    members = family(process.pid)
    found = workers(members) if kind == WORKER else [member for member in members if "temporary_server" in member.command]
    return found[0].pid if found else None


def strike(moment: Moment, spec, empty: Path, data: Path, server: dict[str, str] | None) -> tuple[str, float]:
    """Starts a run on a copy of the prepared folder and kills; what it said, and the seconds until all of it was gone."""
    for delay in (moment.delay, moment.delay / 2, 0.0):
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(empty, data)
        process = start(spec, data, server=server)
        while process.poll() is None and len(events_of(data)) <= moment.event:
            time.sleep(0.02)
        time.sleep(delay)
        while (pid := victim_of(process, moment.victim)) is None and process.poll() is None:
            time.sleep(0.01)
        if pid is None or process.poll() is not None:
            process.communicate()
            continue  # this time it was quicker
        members = family(process.pid)
        os.kill(pid, signal.SIGKILL)
        struck = time.monotonic()
        _, err = process.communicate(timeout=BOUND)
        while left := [member for member in members if is_alive(member)]:
            assert time.monotonic() < struck + BOUND, f"still there: {left}"
            time.sleep(0.05)
        seconds = time.monotonic() - struck
        if moment.victim == FLOW:
            assert process.returncode == -signal.SIGKILL
        elif process.returncode != 0:  # 0: it was not needed any more
            assert process.returncode == 1, err
            assert len(err.strip().splitlines()) == 1, err
            assert "finished work is kept; run the same command again to continue" in err
        return err.strip(), seconds
    raise AssertionError("every time the run ended before it could be killed")


@pytest.fixture
def kill_and_rerun(uninterrupted, expected, chosen, laid_out, server_settings, tmp_path):
    """Kills at a moment, by its number, runs the command again, and compares; what the killed command said."""

    def kill(number: int) -> str:
        moment, data, spec = chosen[number], tmp_path / str(number), uninterrupted.spec
        # That a server ends with its killed command is seen where it is its own.
        said, seconds = strike(moment, spec, laid_out, data, server_settings if moment.victim == WORKER else None)
        process = start(spec, data, *AGAIN[number % 2], server=None if moment.victim == SERVER else server_settings)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, (out, err)
        found = outcome(data)
        assert not [name for name in expected if found[name] != expected[name]], _first_difference(found, expected)
        shutil.rmtree(data)
        return f"{moment}: gone in {seconds:.1f} s; {said}"

    return kill


def test_after_a_kill_one_rerun_ends_with_the_same(bandana, laid_out, tmp_path):
    """Blocks of a pool, and what this process does after the kill, are those of this process alone, bit for bit."""
    small = {"horizon": 1000, "replications": 4, "audit": {"rounds": 8, "replays": 1000, "examples": 5}}
    spec, whole, data = killable(tmp_path, **small), tmp_path / "whole", tmp_path / "data"

    def run(data):
        done = bandana("run", spec, "--audit", "--executor", "local", "--data", data)
        assert done.exit_code == 0, done.output

    shutil.copytree(laid_out, whole)
    run(whole)
    phases = [name for name, _ in events_of(whole)]
    strike(Moment(FLOW, phases.index("audit started"), 0.0, "audit started"), spec, laid_out, data, None)
    run(data)
    expected, found = outcome(whole), outcome(data)
    assert not [name for name in expected if found[name] != expected[name]], _first_difference(found, expected)


@pytest.mark.nightly
def test_after_each_of_twenty_kills_one_rerun_ends_with_the_same(kill_and_rerun, chosen):
    lines, failed = dict[int, str](), list[int]()

    def try_one(number: int) -> None:
        try:
            lines[number] = kill_and_rerun(number)
        except Exception as error:
            failed.append(number)
            lines[number] = f"{chosen[number]}: {type(error).__name__}: {error}"
        print(f"{number:2} {lines[number]}")

    with ThreadPoolExecutor(2) as lanes:
        list(lanes.map(try_one, range(KILLS)))
    assert not failed, "\n".join(lines[number] for number in failed)


def _first_difference(found, expected) -> str:
    name = next(name for name in expected if found[name] != expected[name])
    return f"{name}: {found[name]!r:.2000} is not {expected[name]!r:.2000}"
