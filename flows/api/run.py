"""`bandana.run` plays a suite in this process; `bandana.load` opens a finished one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import yaml

from bandana import ready
from bandana.flows.api.result import Result
from bandana.flows.cells.audits import check_audits
from bandana.flows.folder.settings import DataFolder, data_root, n_workers
from bandana.flows.folder.store import write_whole
from bandana.flows.own.data import pinned
from bandana.flows.plan.plan import Plan, is_small
from bandana.flows.results import old_results
from bandana.flows.running.side_by_side import Workers
from bandana.flows.spec.spec import Spec, load_spec, parse_spec, standing_alone
from bandana.flows.suites import steps
from bandana.flows.texts.mistakes import SpecError
from bandana.layers import explained

_LOCAL, _PROCESSES = "local", "processes"
_PLAIN = (str, int, float, bool, type(None))


@explained()
def run(
    spec: str | Path | Mapping[str, object],
    *,
    data: str | Path | None = None,
    audit: bool = False,
    track: bool = False,
    executor: Literal["local", "processes"] | None = None,
    workers: int | None = None,
) -> Result:
    """Plays a suite in this process, without any server, and returns its result.

    Results lie in the data folder under the keys of `bandana run`: either continues what the other began, and what is
    finished is not computed again. Time limits and retries of the spec's field `execution` are for the command alone.

    Args:
      spec: the place of a YAML file, a YAML text, or the spec's fields as a dict.
      data: data folder; None: BANDANA_DATA, or ./bandana_data.
      audit: whether every private cell is audited too, with its planted faults.
      track: whether cells are written to MLflow, as the command does; `bandana ui` shows them.
      executor: `local` works in this process, `processes` in several; None: in processes unless the suite is small.
      workers: how many processes; None: one a core. More than one means `processes`.

    Raises:
      SpecError: a mistake in an argument or in the spec; the message names the field and what is allowed.
    """
    checked, text = read(spec)
    if executor not in (None, _LOCAL, _PROCESSES):
        raise SpecError(f"executor: must be 'local' or 'processes', got {executor!r}; `bandana run` knows also dask")
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise SpecError(f"workers: must be a whole number of at least 1, got {workers!r}")
    if executor == _LOCAL and workers not in (None, 1):
        raise SpecError(f"workers: {workers} processes need executor='processes', got executor='local'")
    plan = Plan.of(checked, data_root(data))
    if audit:
        if not plan.private:
            raise SpecError("audit: there is nothing to audit, no algorithm here is private")
        check_audits(plan.private)
    folder = _open(data)
    tracker = steps.open_tracker([plan], folder) if track else None
    folder.sweep()
    write_whole(folder.suite(checked.name) / "spec.yaml", standing_alone(checked, text).encode())
    plan = plan.bound(folder.root)
    if folder.results.is_dir():
        old_results.find_in(plan.played, ["benchmark", *(["audit"] if audit else [])], folder).tell(folder.results)
    several = 1 if executor == _LOCAL else workers or n_workers()
    is_quick = executor is None and workers is None and is_small(plan.played)
    with Workers(several) as pool:
        steps.benchmark([plan], folder, Workers(1) if is_quick else pool, tracker)
        if audit:
            steps.audit([plan], folder, pool, tracker)
    return Result(plan, text, folder)


def load(suite: str, *, data: str | Path | None = None) -> Result:
    """Opens a finished suite of a data folder, whoever ran it.

    Args:
      suite: its name, the spec's field `name`.
      data: data folder; None: BANDANA_DATA, or ./bandana_data.

    Raises:
      SpecError: the data folder has no such suite, or lacks results of it; the message lists the suites that there are.
    """
    folder = DataFolder(data_root(data))
    place = folder.suite(suite) / "spec.yaml"
    if not place.is_file():
        known = sorted(path.parent.name for path in folder.suite("x").parent.glob("*/spec.yaml"))
        there = f"it has: {', '.join(known)}" if known else "it has none yet; run a spec first"
        raise SpecError(f"{folder.root} has no suite {suite!r}; {there}")
    result = Result(Plan.of(pinned(load_spec(place), folder.root)), place.read_text(encoding="utf-8"), folder)
    result.check_whole()
    return result


def _open(data: str | Path | None) -> DataFolder:
    try:
        return DataFolder.open(data)
    except OSError as error:
        raise SpecError(f"data: the folder cannot be used: {error}") from error


def read(spec: str | Path | Mapping[str, object]) -> tuple[Spec, str]:
    """The checked spec, and its text.

    Args:
      spec: the place of a YAML file; a YAML text, which has several lines; or its fields, of which arrays become lists.
        Places of files in a text or in fields are relative to the current directory.

    Raises:
      SpecError: there is no such file, or a field is wrong; every mistake is listed.
    """
    if isinstance(spec, Mapping):
        text = str(yaml.safe_dump(_plain(spec, ""), sort_keys=False, allow_unicode=True))
        try:
            return parse_spec(text, "spec", Path.cwd()), text
        except SpecError as error:
            lines = (re.sub(r"^spec:\d+: ", "", line) for line in str(error).splitlines())
            raise SpecError("\n".join(lines)) from None
    if isinstance(spec, str) and "\n" in spec.strip():
        return parse_spec(spec, "spec", Path.cwd()), spec
    if not isinstance(spec, str | Path):
        raise SpecError(f"spec: give the place of a YAML file, a YAML text or a dict, got {type(spec).__name__}")
    path = ready.place(Path(spec))
    return load_spec(path), path.read_text(encoding="utf-8")


def _plain(value: object, place: str) -> object:
    """The value as YAML can write it: arrays as lists, numbers of NumPy as numbers, paths as text."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each, f"{place}.{name}" if place else str(name)) for name, each in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(each, f"{place}[{i}]") for i, each in enumerate(value)]
    advice = "; an algorithm of your own is named by its file" if callable(value) or place.startswith("algorithms") else ""
    raise SpecError(f"{place or 'spec'}: must be made of numbers, text, lists and dicts, got {type(value).__name__}{advice}")
