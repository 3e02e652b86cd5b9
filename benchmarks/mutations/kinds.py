"""Which lines carry privacy or correctness, and which of their mutations are planted.

A kind is a rule: files, and words of the line or names of the function. Chosen are the mutations of a kind with the smallest
hashes of seed and name, so that an edit leaves the choice in other functions as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from hashlib import sha256
from typing import NamedTuple

from benchmarks.mutations.operators import Mutation, compiles

PER_KIND = 10
PER_FUNCTION = 1
"""At most so many of one kind in a function, so that one long formula is not half of the sample."""
PER_FILE = 3
PER_OPERATOR = 2


class Kind(NamedTuple):
    """A kind of lines.

    Attributes:
      name: what the lines do.
      files: patterns of paths.
      functions: of the qualified name; a match is enough.
      line: of the line; a match is enough.
    """

    name: str
    files: tuple[str, ...]
    functions: str = ""
    line: str = ""

    def holds(self, mutation: Mutation) -> bool:
        """Whether a mutation is of this kind."""
        if not any(fnmatch(mutation.path, pattern) for pattern in self.files):
            return False
        named = bool(self.functions) and re.search(self.functions, mutation.function) is not None
        return named or (bool(self.line) and re.search(self.line, mutation.before) is not None)


def _in(folder: str) -> Callable[..., tuple[str, ...]]:
    return lambda *names: tuple(f"{folder}/{name}.py" for name in names)


_CORE, _AUDITS, _FLOWS = _in("privacy_core"), _in("audits"), _in("flows")
_ALGORITHMS = ("algorithms/bandits/*", "algorithms/rl/*")
_EVERY = r"^"

KINDS = (
    Kind(
        "calibrate",
        (
            *_CORE("accounting/accountant", "accounting/factorization*"),
            "privacy_core/noise/sensitivities.py",
            "algorithms/papers/*",
        ),
        _EVERY,
    ),
    Kind("calibrate", ("algorithms/*/entries.py", "algorithms/rl/*/forms*.py"), _EVERY),
    Kind(
        "composition",
        _CORE(
            "accounting/composition",
            "accounting/curve",
            "accounting/gaussian",
            "accounting/events",
            "accounting/spending",
            "accounting/structures",
            "accounting/guarantees",
        ),
        _EVERY,
    ),
    Kind("clipping", ("privacy_core/clipping.py",), _EVERY),
    Kind(
        "clipping",
        (*_ALGORITHMS, "algorithms/environments/*", "flows/spec/*"),
        r"[Cc]lipp",
        r"clip|_range\.(low|high)",
    ),
    Kind(
        "spec checks",
        ("flows/spec/*spec*.py", "flows/folder/settings.py", "flows/results/gate.py", "privacy_core/checks.py"),
        _EVERY,
    ),
    Kind("spec checks", ("algorithms/*", "privacy_core/*"), r"__post_init__|_check|checked"),
    Kind(
        "seeds",
        ("flows/*", "algorithms/*", "audits/*", "privacy_core/noise/sources.py"),
        r"_?seed$",
        r"seed|[Ss]pawn|coin|generator",
    ),
    Kind("keys", _FLOWS("folder/store", "plan/*", "results/baseline", "keys/*"), _EVERY),
    Kind("keys", ("flows/*",), r"key|digest|identity", r"key|digest|sha256|content_"),
    Kind(
        "retries",
        _FLOWS(
            "running/executors",
            "running/process_pool",
            "running/processes",
            "tracking/store/locks",
            "tracking/store/errors",
            "servers/temporary_server",
            "running/interrupt",
            "folder/scratch",
            "annexes/operations/service",
            "suites/steps",
            "annexes/operations/clock",
            "running/warm_start",
        ),
        _EVERY,
    ),
    Kind("record spans", _CORE("ledger", "accounting/book", "doubling"), _EVERY),
    Kind("record spans", ("privacy_core/*", *_ALGORITHMS), r"push|\.close$", r"records|[Ss]pan|carried|n_records|\.stop\b"),
    Kind("noise sharing", ("privacy_core/noise/sources.py", "privacy_core/tree.py", "audits/searches/noise.py"), _EVERY),
    Kind(
        "noise sharing",
        ("privacy_core/*", "audits/faults/releases.py"),
        r"draw|color|whiten|release|log_density",
        r"noise\.",
    ),
    Kind(
        "scales",
        ("privacy_core/*", *_ALGORITHMS),
        r"scale|deviation|variance|event",
        r"scale|deviation|multiplier|_sd\b|sigma",
    ),
    Kind(
        "sensitivities", ("privacy_core/*", *_ALGORITHMS), r"sensitivity|norm|width|change", r"sensitivity|norm|width|bound"
    ),
    Kind(
        "replay",
        _AUDITS(
            "replays/*",
            "searches/sides",
            "searches/deterministic",
            "searches/checks",
            "searches/walk",
            "searches/states",
            "neighbors/worst_pair",
            "own/rescaled",
        ),
        _EVERY,
    ),
    Kind(
        "bounds",
        _AUDITS(
            "bounds/*",
            "claims",
            "outcome",
            "replays/measure",
        ),
        _EVERY,
    ),
    Kind(
        "decisions",
        (
            "algorithms/regression/*",
            "algorithms/rkhs/*",
            "algorithms/mdp/*",
            "algorithms/ties.py",
            *_ALGORITHMS,
            "algorithms/run.py",
            "algorithms/observers.py",
        ),
        _EVERY,
    ),
)
"""The first that holds decides; several rules may share a name."""


def names() -> list[str]:
    """The kinds' names, in order."""
    return list(dict.fromkeys(kind.name for kind in KINDS))


def kind_of(mutation: Mutation) -> str | None:
    """The name of a mutation's kind, if it has one."""
    return next((kind.name for kind in KINDS if kind.holds(mutation)), None)


def rank(seed: int, mutation: Mutation) -> str:
    """A random number that depends on seed and name alone."""
    return sha256(f"{seed}\n{mutation.name}".encode()).hexdigest()


def choose(
    candidates: Iterable[Mutation], source_of: Callable[[str], str], seed: int, per_kind: int = PER_KIND
) -> dict[str, list[Mutation]]:
    """The mutations to plant, by kind, in the order of their ranks.

    Args:
      candidates: all mutations of all files.
      source_of: a file's text, to leave out what does not compile.
      seed: of the choice.
      per_kind: how many of each kind; fewer where the limits for a function, a file and an operator leave fewer.
    """
    chosen: dict[str, list[Mutation]] = {name: [] for name in names()}
    used: Counter[tuple[str, ...]] = Counter()
    for mutation in sorted(candidates, key=lambda mutation: rank(seed, mutation)):
        kind = kind_of(mutation)
        if kind is None or len(chosen[kind]) >= per_kind:
            continue
        limits = {
            (kind, "function", mutation.path, mutation.function): PER_FUNCTION,
            (kind, "file", mutation.path): PER_FILE,
            (kind, "operator", mutation.operator): PER_OPERATOR,
        }
        if any(used[key] >= limit for key, limit in limits.items()) or not compiles(mutation, source_of(mutation.path)):
            continue
        chosen[kind].append(mutation)
        used.update(limits.keys())
    return chosen
