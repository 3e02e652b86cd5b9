"""`bandana.audit` audits an algorithm or a function of your own, in a child of this process."""

from __future__ import annotations

import inspect
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bandana.audits import evidence
from bandana.audits.outcome import Numbers, Outcome
from bandana.audits.own import conformance
from bandana.flows.annexes.anything.files import ALGORITHM, FUNCTION, Loaded
from bandana.flows.annexes.anything.own import Request, audit_own, load
from bandana.flows.annexes.anything.own_reports import ReportRequest, report_document
from bandana.flows.folder.store import write_whole
from bandana.flows.results.audit_report import tell, write_document
from bandana.flows.running import child
from bandana.flows.texts.file_names import file_name
from bandana.flows.texts.mistakes import SpecError


class Audit:
    """A finished audit.

    Attributes:
      outcome: all that was found: bounds, scores, planted faults, power.
      label: what was audited, as FILE.py:NAME.
    """

    def __init__(self, given: object, loaded: Loaded, request: Request, outcome: Outcome) -> None:
        self.outcome, self.label = outcome, loaded.label
        self._given, self._loaded, self._request = given, loaded, request

    def __repr__(self) -> str:
        return f"<Audit of {self.label}: {self.verdict}>"

    def _repr_html_(self) -> str:
        """The same as `text`, for a notebook."""
        return f"<pre>{escape(self.text())}</pre>"

    @property
    def verdict(self) -> str:
        """The verdict in capitals, such as PASS or FAIL; see docs/audits.md."""
        return self.outcome.verdict.value

    @property
    def numbers(self) -> dict[str, Numbers]:
        """Quantity, such as `mu`, to what is claimed, accounted (None without a ledger) and measured, a lower bound."""
        return {str(quantity): three for quantity, three in self.outcome.numbers.items()}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not PASS, in words; empty where it is."""
        return tuple(self.outcome.reasons)

    def text(self) -> str:
        """The lines that `bandana audit` prints: the verdict, the numbers, the planted faults and the power."""
        return "\n".join(tell(self.label, self.outcome))

    def save(self, path: str | Path) -> Path:
        """Writes the evidence, from which `bandana verify` recomputes every bound and the verdict, and returns its place.

        Raises:
          SpecError: a name that does not end in .npz.
        """
        place = Path(path)
        if place.suffix != ".npz":
            raise SpecError(f"path: evidence is a file that ends in .npz, got {place.name!r}")
        write_whole(place, evidence.to_bytes(self.outcome))
        return place

    def report(self, folder: str | Path) -> list[Path]:
        """Writes evidence and report into a folder, and returns the files: JSON; with the extra `report` HTML and PDF."""
        stem = Path(folder) / file_name(f"{self._loaded.path.stem} {self._loaded.name}")
        place = self.save(stem.with_name(f"{stem.name}.evidence.npz"))
        request = self._request
        shown = ReportRequest(request.claim, request.rounds, request.seed, request.arms)
        document = report_document(self._loaded, self.outcome, shown, place)
        if not isinstance(self._given, str):
            document["commands"][0] = f'bandana.audit({self._loaded.name}, "{self._request.claim}")'
        return [place, *write_document(document, stem).values()]


def audit(
    algorithm: Any,
    claim: str,
    *,
    relation: str | None = None,
    trust: str | None = None,
    replays: int = 20_000,
    rounds: int = 32,
    arms: int | None = None,
    confidence: float = 0.95,
    delta: float | None = None,
    examples: int = 100,
    seed: int = 0,
    probes: Sequence[int] = (),
    low: float = 0.0,
    high: float = 1.0,
    pair: tuple[object, object] | None = None,
    users: object = None,
    data: Sequence[Sequence[float]] | np.ndarray | None = None,
    timeout: float | None = None,
    memory: float | None = None,
    isolated: bool = True,
) -> Audit:
    """Audits an algorithm or a function of your own, as `bandana audit-own` does.

    It runs in a fork of this process, so that a crash, a hang or `os._exit` is one line and leaves this one alone.

    Args:
      algorithm: an algorithm that keeps the protocol; a function (rewards, seed) -> actions; or FILE.py:NAME.
      claim: what it promises, such as `gdp(mu=1, relation=reward)`.
      relation: neighboring relation, if the claim names none: reward, record, trajectory or user.
      trust: trust model, if the claim names none: central, joint, shuffle or local.
      replays: on each side of each pair of neighbors.
      rounds: of each replay.
      arms: of a function; None: two.
      confidence: joint confidence of all bounds.
      delta: at which epsilons are stated; None: the claim's own, or 1e-5.
      examples: cases that the deterministic audit tries.
      seed: root of all seeds.
      probes: records to plant canaries at; none: found from the ledger.
      low: least reward of a function.
      high: largest one.
      pair: two data sets on which the claim is made, in place of a neighboring relation: tables of rewards
        (n_rounds, n_arms) for a bandit, anything for another function of (data, seed).
      users: for a claim with relation=user: one number or name for each round, or how many consecutive rounds a user has.
      data: for such a claim: the table of rewards (n_rounds, n_arms) in which users are replaced; None: one is drawn.
      timeout: seconds that one call of it may take; None: 120.
      memory: gigabytes that it may use; None: three quarters of this machine's.
      isolated: False runs it in this process, without limits: for a debugger, and for libraries that cannot be forked.

    Raises:
      SpecError: a mistake in an argument, or in what is audited; the message says which and what to do.
    """
    is_named = isinstance(algorithm, str)
    given = None if is_named else _given(algorithm)
    if data is not None:
        rounds = len(data)
    request = Request(
        algorithm if is_named else _label(given), claim, relation, trust, replays, rounds, arms, confidence, delta,
        examples, seed, tuple(probes), low, high, pair=pair, users=users, data=data,
    )  # fmt: skip

    def work() -> Outcome:
        with threadpool_limits(1):
            return audit_own(request, given)[1]

    with _arguments_named():
        if not isolated:
            outcome = work()
        else:
            allowed = child.limits(timeout, memory, request.seconds)
            returned = child.run(work, allowed, f"algorithm: {Path(request.algorithm).name}")
            if returned.printed:
                warnings.warn(f"{Path(request.algorithm).name} {returned.printed}", stacklevel=2)
            outcome = returned.value
        loaded = given or load(request.algorithm, request.arms)  # its file did no harm to the child
    return Audit(algorithm, loaded, request, outcome)


def _label(given: Loaded | None) -> str:
    assert given is not None
    return given.label


def _given(subject: object) -> Loaded:
    """An object of this process as a file would have held it; SpecError for one that draws by itself."""
    kind = subject if inspect.isroutine(subject) or inspect.isclass(subject) else type(subject)
    if inspect.isclass(subject):
        raise SpecError(f"algorithm: {subject.__name__} is a class: give an object of it, {subject.__name__}(...)")
    path, name, source = _place(kind), str(getattr(kind, "__name__", "algorithm")).strip("<>"), _source(kind)
    lacks = conformance.missing_members(subject)
    if not lacks:
        if source is None:
            raise SpecError(
                f"algorithm: the source of {name} cannot be read, so nothing excludes randomness of its own: define it in a "
                "file or in a notebook"
            )
        if drawn := conformance.draws(source):
            raise SpecError(
                f"algorithm: {name} draws its own randomness, which no ledger accounts for: "
                f"{', '.join(draw.what for draw in drawn)}; let all noise come from ledger.release"
            )
        return Loaded(ALGORITHM, subject, path, name, source)
    if callable(subject):
        return Loaded(FUNCTION, subject, path, name, source or repr(subject))
    raise SpecError(
        f"algorithm: {name} is neither an algorithm nor a function (rewards, seed) -> actions; as an algorithm it lacks\n  "
        + "\n  ".join(lacks)
    )


def _place(kind: type | Callable[..., object]) -> Path:
    """The file that defines a class or a function; the module's name where there is none, as in a notebook."""
    try:
        return Path(inspect.getfile(kind))
    except (TypeError, OSError):
        return Path(str(getattr(kind, "__module__", None) or "python"))


def _source(kind: type | Callable[..., object]) -> str | None:
    """The text of a class or a function; of a notebook's class that of its methods; None where there is none.

    From Python 3.13 on, the text of a class is what stands at its line in the file of its module, also where it was defined
    in no file: it is believed where a method says that this is its file.
    """
    methods = [value for value in _functions(kind) if not value.__name__.startswith("__")]
    try:
        file = Path(inspect.getfile(kind)).resolve()
        if not methods or any(Path(inspect.unwrap(method).__code__.co_filename).resolve() == file for method in methods):
            return textwrap.dedent(inspect.getsource(kind))
    except (TypeError, OSError):
        pass
    try:
        sources = [textwrap.dedent(inspect.getsource(method)) for method in methods]
    except (TypeError, OSError):
        return None
    return "\n".join(sources) or None


def _functions(kind: object) -> Iterator[FunctionType]:
    for value in vars(kind).values() if inspect.isclass(kind) else ():
        function = value.fget if isinstance(value, property) else value
        if inspect.isfunction(function):
            yield function


@contextmanager
def _arguments_named() -> Iterator[None]:
    """Mistakes name the arguments of a call, where the command's name options."""
    try:
        yield
    except SpecError as error:
        raise SpecError(re.sub(r"--([a-z])", r"\1", str(error))) from error.__cause__
