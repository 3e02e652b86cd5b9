"""A release in any language: a command, or a service of this machine, that reads lines and writes lines.

The first line that it reads is the data set, as JSON. Each line after it is a seed, a whole number from 0 to 2^31 - 1. For
each seed it writes one line, in order: a JSON value, or numbers between blanks or commas. It ends where its input ends. One
process, or one connection, makes many runs; nothing has to be flushed before the end.
"""

from __future__ import annotations

import ipaddress
import json
import os
import selectors
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from bandana.algorithms.protocol import IntArray
from bandana.flows.annexes.anything.outputs.calls import Batch, BrokenSubject, Caller, ManyRuns
from bandana.flows.texts.mistakes import SpecError

COMMAND, ADDRESS = "exec:", "tcp:"
_MOST_BYTES = 256 * 2**20
_PREFIX, _VARYING = 64, 8
_SHOWN = 60
_TRIED = 4
_SEEDS = 2**31
"""Generators of some languages take larger seeds for one and the same."""


@dataclass
class Program(ManyRuns):
    """A command or a service as a function of a data set and seeds; see `named`.

    Attributes:
      words: the command and its arguments; empty for a service.
      address: of a service: host and port.
      seconds: in which it must answer; it is ended when it wrote nothing for so long.
    """

    words: tuple[str, ...] = ()
    address: tuple[str, int] | None = None
    seconds: float = 120.0
    _starts: dict[tuple[str, ...], str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The command without folders, or the address."""
        return " ".join(Path(word).name or word for word in self.words) or "{}:{}".format(*self.address or ("", 0))

    def __call__(self, data: object, seeds: Sequence[int] | IntArray) -> list[object]:
        """One output for each seed.

        Args:
          data: what JSON can say; arrays become lists.
          seeds: whole numbers.

        Raises:
          BrokenSubject: it cannot be started, ends or hangs too early, writes something else, or ignores its seeds.
        """
        numbers = [int(seed) % _SEEDS for seed in np.atleast_1d(seeds)]
        text = "\n".join([_as_json(data), *map(str, numbers)]) + "\n"
        with self._opened() as pipes:
            lines = _exchanged(pipes, text.encode(), len(numbers), self.seconds)
        self._check_start(lines, text)
        return [_value(line, place) for place, line in enumerate(lines, start=1)]

    def caller(self, data: object, neighbor: object, seed: int) -> Caller:
        """The program for `draw`: it is tried on both data sets, and with the same seeds twice.

        Raises:
          BrokenSubject: as when it is called.
        """
        tried = np.random.SeedSequence(seed, spawn_key=(7,)).generate_state(_TRIED, np.uint32).tolist()
        both_ways = [*tried, *reversed(tried)]
        first = self(data, both_ways)
        self(neighbor, tried)
        is_repeatable = first == self(data, both_ways)  # what it keeps between lines, first calls show
        return Caller(self, seed="seeds", batch=Batch.SEEDS, is_repeatable=is_repeatable)

    @contextmanager
    def _opened(self) -> Iterator[_Pipes]:
        """The ends to write to and to read from."""
        opened = self._connected() if self.address is not None else self._started()
        with opened as pipes:
            yield pipes

    @contextmanager
    def _connected(self) -> Iterator[_Pipes]:
        assert self.address is not None
        try:
            connection = socket.create_connection(self.address, timeout=self.seconds)
        except OSError as error:
            raise BrokenSubject(f"nothing answers at {self.name}: {error.strerror or error}") from error
        with connection:
            connection.setblocking(False)
            number = connection.fileno()
            yield _Pipes(
                number, number, lambda: connection.shutdown(socket.SHUT_WR), lambda: (True, "closed the connection")
            )

    @contextmanager
    def _started(self) -> Iterator[_Pipes]:
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
                )
            except OSError as error:
                raise BrokenSubject(f"{self.words[0]} cannot be started: {error.strerror or error}") from error
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                for pipe in (process.stdin, process.stdout):
                    os.set_blocking(pipe.fileno(), False)
                yield _Pipes(
                    process.stdin.fileno(), process.stdout.fileno(), process.stdin.close, lambda: _ended(process, errors)
                )
            finally:
                process.kill()
                process.wait()
                process.stdin.close()
                process.stdout.close()

    def _check_start(self, lines: list[bytes], text: str) -> None:
        """Refuses the same answers to other seeds: a generator that starts from the same state in each process.

        A program without noise answers alike, and so may one whose noise shows seldom: only answers that vary are compared.
        """
        begun = tuple(line.decode("utf-8", "replace") for line in lines[:_PREFIX])
        if len(begun) < _PREFIX or len(begun) - Counter(begun).most_common(1)[0][1] < _VARYING:
            return
        if self._starts.setdefault(begun, text) != text:
            raise BrokenSubject(
                f"it ignores its seeds: other seeds gave the same {_PREFIX} outputs, one after the other; draw all "
                "randomness from the seed of each line, or from the system"
            )


class _Pipes(NamedTuple):
    """Where to write and to read; `close` ends the input, and `ended` tells whether all went well, and how it ended."""

    write: int
    read: int
    close: Callable[[], None]
    ended: Callable[[], tuple[bool, str]]


def named(reference: str, seconds: float) -> Program:
    """The program that `exec:COMMAND` or `tcp:HOST:PORT` names; a service must be on this machine.

    Raises:
      SpecError: no command, no address, or that of another machine.
    """
    if reference.startswith(COMMAND):
        try:
            words = tuple(shlex.split(reference.removeprefix(COMMAND)))
        except ValueError as error:
            raise SpecError(f"mechanism: {reference}: {error}") from error
        if not words:
            raise SpecError("mechanism: exec: needs a command, such as exec:'awk -f noisy.awk'")
        return Program(words, seconds=seconds)
    host, is_named, port = reference.removeprefix(ADDRESS).rpartition(":")
    if not is_named or not port.isdecimal():
        raise SpecError(f"mechanism: must be tcp:HOST:PORT, such as tcp:127.0.0.1:9000, got {reference!r}")
    host = host.strip("[]")
    if not _is_here(host):
        raise SpecError(f"mechanism: only services of this machine are audited (127.0.0.1, ::1, localhost), got {host!r}")
    return Program(address=(host, int(port)), seconds=seconds)


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _as_json(data: object) -> str:
    try:
        return json.dumps(data, default=lambda part: part.tolist())
    except (TypeError, ValueError, AttributeError) as error:
        raise BrokenSubject(f"the data set cannot be written as JSON: {error}") from error


def _value(line: bytes, place: int) -> object:
    """The output that one line holds."""
    text = line.decode("utf-8", "replace").strip()
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        numbers = [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if not numbers:
        shown = repr(text[:_SHOWN]) if text else "empty"
        raise BrokenSubject(f"line {place} of its output must be JSON or numbers between blanks, and is {shown}")
    return numbers[0] if len(numbers) == 1 else numbers


def _exchanged(pipes: _Pipes, text: bytes, n_lines: int, seconds: float) -> list[bytes]:
    """Writes all, and reads until the end; BrokenSubject for another number of lines, or silence for too long."""
    sent, n_bytes, n_found, last = memoryview(text), 0, 0, time.monotonic()
    parts: list[bytes] = []
    with selectors.DefaultSelector() as waiting:
        waiting.register(pipes.read, selectors.EVENT_READ)
        if pipes.write == pipes.read:
            waiting.modify(pipes.read, selectors.EVENT_READ | selectors.EVENT_WRITE)
        else:
            waiting.register(pipes.write, selectors.EVENT_WRITE)
        while True:
            ready = waiting.select(max(0.0, last + seconds - time.monotonic()))
            if not ready:
                raise BrokenSubject(
                    f"wrote {n_found} of {n_lines} lines and then nothing for {seconds:g} s: it must read to the end of its "
                    "input; if it is slow, raise the limit with --timeout"
                )
            for key, events in ready:
                if events & selectors.EVENT_WRITE:
                    sent = _written(pipes, sent, waiting)
                if events & selectors.EVENT_READ and key.fd == pipes.read:
                    part = _some(pipes.read)
                    if part is None:
                        continue
                    if not part:
                        return _all_lines(b"".join(parts), n_lines, pipes)
                    parts.append(part)
                    n_bytes, n_found, last = n_bytes + len(part), n_found + part.count(b"\n"), time.monotonic()
                    if n_found > n_lines or n_bytes > _MOST_BYTES:
                        much = f"more than {n_lines} lines" if n_found > n_lines else f"more than {_MOST_BYTES >> 20} MB"
                        raise BrokenSubject(f"wrote {much} for {n_lines} seeds: one line for each seed, and nothing else")


def _written(pipes: _Pipes, rest: memoryview, waiting: selectors.BaseSelector) -> memoryview:
    """Writes some of the rest; at the end, or if nobody reads on, the input is closed."""
    try:
        rest = rest[os.write(pipes.write, rest[:65536]) :]
    except BlockingIOError:
        return rest
    except (BrokenPipeError, ConnectionError):
        rest = rest[:0]
    if not rest:
        if pipes.write == pipes.read:
            waiting.modify(pipes.read, selectors.EVENT_READ)
        else:
            waiting.unregister(pipes.write)
        with suppress(OSError):  # it is closed already
            pipes.close()
    return rest


def _some(number: int) -> bytes | None:
    """The bytes that can be read now: empty at the end, None if there are none yet."""
    try:
        return os.read(number, 65536)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def _all_lines(found: bytes, n_lines: int, pipes: _Pipes) -> list[bytes]:
    """The lines of a program that ended."""
    lines = found.split(b"\n")
    lines = lines[:-1] if not lines[-1].strip() else lines
    is_good, how = pipes.ended()
    if len(lines) != n_lines or not is_good:
        raise BrokenSubject(f"{how} after {len(lines)} of {n_lines} lines: one line for each seed")
    return lines


def _ended(process: subprocess.Popen[bytes], errors: IO[bytes]) -> tuple[bool, str]:
    """The end of a process: if it is as it should be, and how it came, with the last line of its errors."""
    try:
        status = process.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        return True, "closed its output"
    errors.seek(0)
    last_line = errors.read(65536).decode("utf-8", "replace").strip().split("\n")[-1]
    how = f"crashed ({signal.Signals(-status).name})" if status < 0 else f"ended with status {status}"
    return status == 0, f"{how} ({last_line[:200]})" if last_line else how
