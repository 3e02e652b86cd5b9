"""A benchmark: a folder of specs, a problem for each environment, of a stated version; whole or quick; and your own rows."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, Field, ValidationError

from bandana.flows.keys.content import content_key
from bandana.flows.own.algorithms import OwnAlgorithmSpec
from bandana.flows.plan.plan import Plan
from bandana.flows.spec.aims import Aim
from bandana.flows.spec.every import EverySpec
from bandana.flows.spec.spec import AnyAlgorithm, Spec, parse_spec
from bandana.flows.texts.fields import Count, OneOrSeveral, Strict, distinct
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError, explain

VERSION, ROWS = "version.json", "rows"
BEST_ARM = "best-arm"
"""Kind of the problems on which tests for the best arm play, and nothing else."""
QUICK_RULE = (
    "a tenth of the rounds, but at least 500 where there are so many; a fifth of the replications, but at least 4, and no "
    "row plays on; audits at the middle level of privacy alone, of 20,000 replays; entries whose planted faults need more, "
    "to which a problem gives replays of their own, are audited in the whole form only"
)
_LEAST_ROUNDS, _LEAST_REPLICATIONS, _QUICK_REPLAYS = 500, 4, 20_000
_WORDS = ("name", "title", "description")
"""Fields of a problem that change no number."""


class _Version(Strict):
    """The file that says which version of a benchmark a folder holds."""

    version: Count = Field(description="Raised whenever a problem is added or changed.")
    title: str = Field(description="Title of the leaderboard.")
    problems: dict[str, str] = Field(description="Problem -> hash of its spec, in the order of the page.")


class _Rows(Strict):
    """A file of your own rows."""

    problems: OneOrSeveral[str] = Field(description="Problems, or kinds of problems, that they play on.")
    algorithms: Annotated[list[JsonObject], Field(min_length=1), AfterValidator(distinct)] = Field(
        description="As in a spec: a file with NAME, a claim and parameters."
    )


@dataclass(frozen=True)
class Problem:
    """One problem of a benchmark.

    Attributes:
      name: of its file; where that lists several environments, followed by the label of this one.
      spec: what is played.
      text: of the spec.
      is_changed: whether it differs from what the version lists.
      whole: what is played in the whole form, without rows of your own.
      file: name of the file, which other problems may share.
    """

    name: str
    spec: Spec
    text: str
    is_changed: bool
    whole: Spec
    file: str

    @cached_property
    def plan(self) -> Plan:
        """The work that the spec means."""
        return Plan.of(self.spec)

    @property
    def kind(self) -> str:
        """Kind of problem, such as finite or contextual, or best-arm."""
        return _kind_of(self.spec)

    @property
    def aim(self) -> Aim:
        """Aim of its algorithms, and their measure."""
        return _aim_of(self.spec)


@dataclass(frozen=True)
class Benchmark:
    """A benchmark, as it will be played.

    Attributes:
      title: of the page.
      version: of the folder.
      is_quick: whether it is the quick form.
      problems: in the order of the version, then those that it does not list.
      folder: where it lies.
    """

    title: str
    version: int
    is_quick: bool
    problems: tuple[Problem, ...]
    folder: Path

    @property
    def levels(self) -> list[float]:
        """Every level of privacy that a problem has, as mu."""
        levels = {mu for problem in self.problems for item in every_of(problem.spec) for mu in item.mu or ()}
        return sorted(levels)


def every_of(spec: Spec) -> list[EverySpec]:
    """The items of a spec that stand for entries of the catalog."""
    return [item for item in spec.algorithms if isinstance(item, EverySpec)]


def read(folder: Path, rows: Path | None = None, only: list[str] | None = None, *, is_quick: bool = False) -> Benchmark:
    """Reads and checks a benchmark.

    Args:
      folder: holds `version.json` and specs.
      rows: folder of your own rows; None: `rows` in the folder, if it exists.
      only: names of problems, or of files; None: all.
      is_quick: whether to take the quick form, see `QUICK_RULE`.

    Raises:
      SpecError: a file is missing or wrong; the message names the file and the field.
    """
    try:
        version = _Version.model_validate_json(_text(folder / VERSION))
    except ValidationError as error:
        words = [explain(item, _Version, None, str(folder / VERSION)) for item in error.errors()]
        raise SpecError("\n".join(words)) from error
    names = [path.stem for path in sorted(folder.glob("*.yaml"))]
    if missing := [name for name in version.problems if name not in names]:
        raise SpecError(
            f"{folder / VERSION}: problems: {missing[0]}.yaml is not in the folder; restore it or raise the version"
        )
    ordered = [*version.problems, *(name for name in names if name not in version.problems)]
    own = _own_rows(rows if rows is not None else folder / ROWS, is_asked=rows is not None)
    known, kinds = set(ordered), set[str]()
    problems: list[Problem] = []
    for file in ordered:
        path = folder / f"{file}.yaml"
        text = _text(path)
        spec = parse_spec(text, str(path), folder)  # mistakes are told with their lines
        _check(spec, path)
        kind, given = _kind_of(spec), yaml.safe_load(text)
        is_changed = digest(given) != version.problems.get(file, "")
        kinds.add(kind)
        for name, tree in _one_each(file, given, spec).items():
            known.add(name)
            if only is not None and not {file, name} & set(only):
                continue
            whole = spec if name == file else parse_spec(_yaml(tree), str(path), folder)
            added = [item for where, items in own for item in items if {file, name, kind} & set(where)]
            tree["algorithms"] = [*tree["algorithms"], *added]
            form = _yaml(_quick(tree) if is_quick else tree)
            problems.append(Problem(name, parse_spec(form, str(path), folder), form, is_changed, whole, file))
    if unknown := [name for name in only or () if name not in known]:
        raise SpecError(f"--only: there is no problem {unknown[0]!r} in {folder}; there are: {', '.join(ordered)}")
    if only is None and (lost := [each for where, _ in own for each in where if each not in known | kinds]):
        there_are = ", ".join(sorted(known | kinds))
        raise SpecError(f"problems: there is no problem and no kind of problem {lost[0]!r}; there are: {there_are}")
    return Benchmark(version.title, version.version, is_quick, tuple(problems), folder)


def _yaml(tree: JsonObject) -> str:
    return str(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=sys.maxsize))


def digest(tree: JsonObject) -> str:
    """Hash of a problem's spec: of all but the words that change no number."""
    return content_key({name: value for name, value in tree.items() if name not in _WORDS})


def audit_plans(benchmark: Benchmark) -> list[Plan]:
    """Plans of the audits on each problem: of entries that no earlier problem has, as a promise depends on no problem."""
    done = left_to_the_whole(benchmark)
    plans = []
    for problem in benchmark.problems:
        plan = Plan.of(audited(problem, done, is_quick=benchmark.is_quick))
        if audits := plan.private:
            plans.append(plan)
            labels = {("record" if cell.promised is None else "user", cell.entry.label) for cell in audits}
            items = [item for item in plan.spec.algorithms if isinstance(item, OwnAlgorithmSpec)]
            own = {entry.name for item in items for entry in item.entries()}
            done |= {(level, label) for level, label in labels if label not in own}
    return plans


def audited(problem: Problem, done: set[tuple[str, str]], *, is_quick: bool) -> Spec:
    """The spec whose private cells are audited: of entries that were not yet, in the quick form at the middle level alone.

    Args:
      problem: of the benchmark.
      done: whose privacy, and label of the entry, of audits that another problem has.
      is_quick: whether it is the quick form.
    """
    items: list[AnyAlgorithm] = []
    for item in problem.spec.algorithms:
        if isinstance(item, EverySpec) and item.mu is not None:
            levels = [middle(item.mu)] if is_quick else item.mu
            before = sorted(label for level, label in done if level == item.level)
            items.append(item.model_copy(update={"mu": levels, "leave_out": [*item.leave_out, *before]}))
        else:
            items.append(item)
    return problem.spec.model_copy(update={"name": f"{problem.spec.name}-audits", "algorithms": items})


def left_to_the_whole(benchmark: Benchmark) -> set[tuple[str, str]]:
    """Whose privacy, and label of the entry, of audits that the quick form leaves out: a problem gives them more replays."""
    items = [item for problem in benchmark.problems for item in every_of(problem.spec)]
    longer = [item for item in items if benchmark.is_quick and item.mu is not None and item.replays is not None]
    return {(item.level, entry.label) for item in longer for entry in item.entries()}


def middle(levels: list[float]) -> float:
    """The middle one of some levels; of an even number the less private one."""
    return sorted(levels)[len(levels) // 2]


def _quick(tree: JsonObject) -> JsonObject:
    """The quick form of a problem."""
    quick = dict(tree)
    horizon, replications = int(tree["horizon"]), int(tree["replications"])
    quick["name"] = f"{tree['name']}-quick"
    quick["horizon"] = max(horizon // 10, min(horizon, _LEAST_ROUNDS))
    quick["replications"] = max(replications // 5, min(replications, _LEAST_REPLICATIONS))
    quick["block_size"] = quick["replications"]  # so few take hardly longer than one
    audit = dict(tree.get("audit", {}))
    quick["audit"] = audit | {"replays": min(int(audit.get("replays", _QUICK_REPLAYS)), _QUICK_REPLAYS)}
    return quick


def _one_each(file: str, tree: JsonObject, spec: Spec) -> dict[str, JsonObject]:
    """The trees of a spec's problems by their names: one for each of its environments."""
    if len(spec.environment) == 1:
        return {file: tree}
    title = tree.get("title", tree["name"])
    return {
        f"{file}-{label}": {**tree, "name": f"{tree['name']}-{label}", "title": f"{title}: {label}", "environment": given}
        for given, label in zip(tree["environment"], (item.shown_label for item in spec.environment), strict=True)
    }


def _kind_of(spec: Spec) -> str:
    return spec.environment[0].problem_kind if _aim_of(spec) is Aim.REGRET else BEST_ARM


def _aim_of(spec: Spec) -> Aim:
    return every_of(spec)[0].aim


def _check(spec: Spec, path: Path) -> None:
    if len(kinds := dict.fromkeys(item.problem_kind for item in spec.environment)) > 1:
        raise SpecError(f"{path}: environment: all are of one kind of problem in a benchmark, got {', '.join(kinds)}")
    if not every_of(spec):
        raise SpecError(f"{path}: algorithms: a problem of a benchmark has an item `all: private`, which all entries join")
    if len(aims := sorted({item.aim for item in every_of(spec)})) > 1:
        raise SpecError(f"{path}: algorithms: a problem of a benchmark measures one thing, got the aims {', '.join(aims)}")
    if any(item.whose_data == "private" for item in spec.environment):
        raise SpecError(
            f"{path}: environment: a leaderboard shows regret, and the rows of a file are private; use public data"
        )


def _own_rows(folder: Path, *, is_asked: bool) -> list[tuple[list[str], list[JsonObject]]]:
    """Problems that each file of rows plays on, and its algorithms, whose files have absolute paths."""
    if not folder.is_dir():
        if is_asked:
            raise SpecError(f"--rows: {folder} is no folder")
        return []
    files = []
    for path in sorted(folder.glob("*.yaml")):
        text = _text(path)
        try:
            tree = yaml.compose(text, Loader=yaml.SafeLoader)
            rows = _Rows.model_validate(yaml.safe_load(text))
        except yaml.YAMLError as error:
            raise SpecError(f"{path}: not valid YAML: {error}") from error
        except ValidationError as error:
            raise SpecError("\n".join(explain(item, _Rows, tree, str(path)) for item in error.errors())) from error
        for i, item in enumerate(rows.algorithms):
            if "file" not in item:
                raise SpecError(f"{path}: algorithms[{i}]: a row of your own names its code: file: mine.py:NAME")
            place, _, name = str(item["file"]).rpartition(":")
            item["file"] = f"{(folder / place).absolute()}:{name}"
        files.append((rows.problems, rows.algorithms))
    return files


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error
