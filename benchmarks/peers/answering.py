"""Answers requests of standard input, one JSON line each, until it ends: both interpreters run it.

A request names a task, how many replications of it, and a seed. The answer has the processor time in seconds, how many units
of work that was, and the values by which the two sides are compared; or what went wrong.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any

Task = Callable[[int, int], tuple[int, list[Any]]]
"""(replications, seed) -> units of work, values."""


def answer_all(tasks: Mapping[str, Task]) -> None:
    """Answers until standard input ends; whatever a library prints goes to standard error."""
    answers, ready = sys.stdout, set()
    with redirect_stdout(sys.stderr):
        for line in sys.stdin:
            request = json.loads(line)
            try:
                if request["task"] not in ready:
                    tasks[request["task"]](1, request["seed"])  # imports and compiles
                    ready.add(request["task"])
                start = time.process_time()
                units, values = tasks[request["task"]](request["replications"], request["seed"])
                answer: dict[str, Any] = {"seconds": time.process_time() - start, "units": units, "values": values}
            except Exception as error:  # a library that fails is a result
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)
