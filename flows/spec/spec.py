"""Specs of users: an experiment as YAML, checked before anything starts, with the line of each mistake."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self, cast

import yaml
from pydantic import Discriminator, Field, PrivateAttr, Tag, ValidationError, model_validator

from bandana.flows.own.algorithms import OwnAlgorithmSpec
from bandana.flows.problems.environment import Setting
from bandana.flows.problems.kinds import EnvironmentSpec
from bandana.flows.spec import tuned
from bandana.flows.spec.algorithms import AlgorithmSpec
from bandana.flows.spec.every import EverySpec
from bandana.flows.spec.tuned import TuningSpec
from bandana.flows.texts import yaml_text
from bandana.flows.texts.effort import Replays
from bandana.flows.texts.fields import NAME, Count, Delta, OneOrSeveral, Positive, Strict
from bandana.flows.texts.mistakes import SpecError, explain_all, line_of
from bandana.privacy_core.checks import MOST_DELTA, suggestion

if TYPE_CHECKING:
    from bandana.audits.documents.report import Deployment

_MOST_BLOCKS, _MOST_BYTES = 10_000, 4 << 20
Words = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"\S")]
ProductType = Literal[
    "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries"
]
Sector = Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"]


class AuditSpec(Strict):
    """Audit effort."""

    rounds: Count = Field(64, description="Users in each replay: rounds or episodes.")
    replays: Replays = Field(100_000, description="Replays on each side of each neighboring pair.")
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = Field(
        0.95, description="Joint confidence level of all bounds of one audit."
    )
    delta: Delta = Field(1e-5, description="Delta at which epsilons are stated.")
    examples: Count = Field(200, description="Cases tried by the deterministic audit.")


class ReportSpec(Strict):
    """Files that a report is written as."""

    formats: OneOrSeveral[Literal["html", "pdf", "json"]] = Field(
        ["html", "pdf", "json"], description="File formats, one or several."
    )


class DeploymentSpec(Strict):
    """Declarations of the operator. The report shows it apart from what was measured; no number depends on it."""

    curator: Words = Field(description="Who holds the data and answers for the release.")
    purpose: Words = Field(description="What the release is for.")
    data_source: Words | None = Field(None, description="Where the data come from, and how people came to be in them.")
    license: Words | None = Field(None, description="License or legal basis of the use of the data.")
    people: Count | None = Field(
        None,
        description="Number of people in the data; delta is judged against it. Without it, the report takes the horizon.",
    )
    region: Words | None = Field(None, description="Region of the data or of the law that applies.")
    sector: Sector | None = Field(None, description="Industry that the data describe, as the public registry names it.")
    product: ProductType = Field(
        "Machine learning model", description="Kind of the released data product, as the public registry names it."
    )
    release_type: Literal["one release", "many releases"] | None = Field(
        None, description="Whether the results are published once or again and again."
    )
    unprotected: OneOrSeveral[Words] | None = Field(
        None, description="Quantities that are published without protection, one or several; `none` if there are none."
    )
    approver: Words | None = Field(None, description="Who approved the release.")
    approved: date | None = Field(None, description="Day of the approval, as YYYY-MM-DD.")
    retention: Words | None = Field(None, description="How long the data and results are kept, and who can reach them.")
    expires: date | None = Field(None, description="Day after which the release must be reviewed again, as YYYY-MM-DD.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.approved is not None and self.expires is not None and self.expires < self.approved:
            raise ValueError(f"expires must not lie before approved, got {self.expires} and {self.approved}")
        if self.approved is not None and self.approver is None:
            raise ValueError("approved needs approver: name who approved the release")
        return self

    def shown(self) -> Deployment:
        """The block as a report's document holds it; null is what was not declared."""
        return cast("Deployment", self.model_dump(mode="json"))


class ExecutionSpec(Strict):
    """Patience of an experiment; no number depends on it."""

    block_timeout: Positive = Field(3600.0, description="Time limit for one block of replicates, in seconds.")
    audit_timeout: Positive = Field(3600.0, description="Time limit for one audit, in seconds.")
    retries: Annotated[int, Field(ge=0, le=10)] = Field(
        2, description="Retries after an infrastructure fault; a mistake in the spec or the code is never retried."
    )


def _whose(given: object) -> str:
    """Tells if an item of `algorithms` names a file of the user's, an algorithm of the catalog, or every one that plays."""
    if "all" in given if isinstance(given, Mapping) else isinstance(given, EverySpec):
        return "many"
    has_file = "file" in given if isinstance(given, Mapping) else isinstance(given, OwnAlgorithmSpec)
    return "own" if has_file else "catalog"


AnyAlgorithm = Annotated[
    Annotated[AlgorithmSpec, Tag("catalog")] | Annotated[OwnAlgorithmSpec, Tag("own")] | Annotated[EverySpec, Tag("many")],
    Discriminator(_whose),
]


class Spec(Strict):
    """One experiment: every environment with every algorithm, calibration and privacy level."""

    name: Annotated[str, Field(pattern=NAME, max_length=80)] = Field(
        description="Suite name; also names its folder and MLflow experiment."
    )
    title: str = Field("", description="Title of the report.")
    description: str = Field("", description="What the experiment shows, in one line.")
    seed: Annotated[int, Field(ge=0)] = Field(description="Root of all seeds.")
    environment: OneOrSeveral[EnvironmentSpec] = Field(description="Environments to play on, one or several.")
    horizon: Count = Field(description="Rounds or episodes, one user each.")
    replications: Count = Field(description="Independent replications of each cell.")
    block_size: Count = Field(100, description="Replicates that are computed and stored together.")
    algorithms: list[AnyAlgorithm] = Field(min_length=1, description="Algorithms to compare.")
    twins: bool = Field(
        True, description="Whether every private cell is played again without noise, with the same widths and forgetting."
    )
    references: bool = Field(
        True, description="Whether uniform play, the best constant action and greedy play are rows of the benchmark."
    )
    noise: Literal["secure", "reproducible"] | None = Field(
        None,
        description="Source of the benchmark's noise: `secure`, from the operating system, which nobody can repeat, or "
        "`reproducible`, from the seed; secure on private tables if left out, and reproducible elsewhere.",
    )
    audit: AuditSpec = Field(AuditSpec(), description="Audit effort.")
    report: ReportSpec = Field(ReportSpec(), description="Report files to write.")
    execution: ExecutionSpec = Field(ExecutionSpec(), description="Timeouts and retries.")
    tuning: TuningSpec | None = Field(
        None, description="Parameter that `bandana tune` chooses for every cell, on other seeds."
    )
    deployment: DeploymentSpec | None = Field(
        None, description="What the operator declares: curator, purpose, data, people, approval. No number depends on it."
    )
    baseline: Path | None = Field(None, description="File of results to compare with; path relative to the spec.")

    _folder: Path | None = PrivateAttr(None)
    _trial: float | None = PrivateAttr(None)
    _lines: tuple[str, ...] = PrivateAttr(())

    @property
    def setting(self) -> Setting:
        """The part of it that environments know."""
        return Setting(self.horizon, self.audit.rounds, self.seed, min(self.block_size, self.replications))

    @property
    def place_of_tuned(self) -> Path:
        """Where the values lie that `bandana tune` chose: beside the spec, under the suite's name, if no file is named."""
        named = self.tuning.file if self.tuning is not None else None
        return (self._folder or Path()) / (named or f"{self.name}.tuned.json")

    def line_of_algorithm(self, place: int | None) -> str:
        """File, line and field of an algorithm, with a colon and a blank, for mistakes that are found later."""
        if place is None:
            return "algorithms: "
        return f"{self._lines[place] if place < len(self._lines) else ''}algorithms[{place}]: "

    def with_trial(self, value: float) -> Spec:
        """The spec of a tuning: every cell with one value of the tuned parameter, on seeds of its own."""
        assert self.tuning is not None
        trial = self.model_copy(
            update={
                "name": f"{self.name}-tuning-{value:g}", "seed": tuned.seed_of_tuning(self.seed),
                "replications": self.tuning.replications, "horizon": self.tuning.horizon or self.horizon,
                "references": False, "twins": False,
            }
        )  # fmt: skip
        trial._trial = value
        return trial

    def tuned_values(self) -> Callable[[str], float]:
        """Cell's name -> value of the tuned parameter.

        Raises:
          SpecError: no value was chosen; see `bandana.flows.spec.tuned.read`.
        """
        if (trial := self._trial) is not None:
            return lambda cell: trial
        values = tuned.read(self.place_of_tuned, self)

        def value_of(cell: str) -> float:
            if cell not in values:
                raise SpecError(f"tuning: {self.place_of_tuned} holds no value for {cell!r}: run `bandana tune` again")
            return values[cell]

        return value_of

    @model_validator(mode="after")
    def _tunes(self) -> Spec:
        if self.tuning is None:
            return self
        name = self.tuning.parameter
        for item in self.algorithms:
            if isinstance(item, OwnAlgorithmSpec):
                item.tune(name, self.tuning.values[0])
        if not any(name in entry.parameters for item in self.algorithms for entry in item.entries()):
            raise ValueError(f"tuning.parameter: no algorithm of this spec takes {name!r}")
        if (self.tuning.horizon or 1) > self.horizon:
            raise ValueError(f"tuning.horizon: must be at most the spec's {self.horizon}, got {self.tuning.horizon}")
        for i, item in enumerate(self.algorithms):
            if name in item.given_parameters():
                where = f"parameters.{name}" if isinstance(item, OwnAlgorithmSpec) else name
                raise ValueError(f"algorithms.{i}.{where}: is tuned; leave it out here or leave tuning out")
        files = [item for item in self.environment if item.data_file is not None]
        if private := [item.shown_label for item in files if item.book is None]:
            raise ValueError(
                f"tuning: {private[0]!r} is a file of data, which no claim protects from tuning: tune on a made-up "
                "environment, or give the table a budget book"
            )
        has_book = bool(files)
        if has_book != (self.tuning.epsilon is not None):
            raise ValueError(
                "tuning.epsilon: a choice on rows with a budget book is a release; give its epsilon, such as epsilon: 0.1"
                if has_book
                else "tuning.epsilon: is for tables with a budget book; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _has_files_that_can_be_listed(self) -> Spec:
        if -(-self.replications // self.block_size) > _MOST_BLOCKS:
            least = -(-self.replications // _MOST_BLOCKS)
            raise ValueError(
                f"block_size: must be at least {least} for {self.replications} replications, as every block is a file and a "
                f"cell has at most {_MOST_BLOCKS:,} of them, got {self.block_size}"
            )
        return self

    @model_validator(mode="after")
    def _fits(self) -> Spec:
        for environment in self.environment:
            if (n_actions := environment.n_arms) is None:
                continue
            for name, value in (("horizon", self.horizon), ("audit.rounds", self.audit.rounds)):
                least = n_actions + (name == "audit.rounds")
                if value < least:
                    raise ValueError(f"{name} must be at least {least} for {n_actions} arms, got {value}")
        for environment in self.environment:
            for i, algorithm in enumerate(self.algorithms):
                if isinstance(algorithm, EverySpec):
                    continue  # those that do not fit do not play
                for entry in algorithm.entries():
                    if not set(environment.played_as) & set(entry.plays_on):
                        raise ValueError(
                            f"algorithms.{i}.algorithm: {entry.name} plays on {' and '.join(entry.plays_on)} environments, "
                            f"and {environment.shown_label} is {environment.problem_kind}; `bandana list` shows what plays "
                            "on it"
                        )
        if any(environment.whose_data == "private" for environment in self.environment):
            for i, algorithm in enumerate(self.algorithms):
                deltas = algorithm.privacy.delta if isinstance(algorithm, AlgorithmSpec) and algorithm.privacy else None
                if deltas and max(deltas) > MOST_DELTA:
                    raise ValueError(
                        f"algorithms.{i}.privacy.delta: must be at most {MOST_DELTA:g} on files of data, got {max(deltas):g}"
                    )
        is_booked = next((item.shown_label for item in self.environment if item.book is not None), None)
        for name in ("twins", "references"):
            if is_booked is not None and name in self.model_fields_set and getattr(self, name):
                raise ValueError(
                    f"{name}: {is_booked!r} has a budget book, and rows without noise exceed every budget; leave {name} out"
                )
        labels = [environment.shown_label for environment in self.environment]
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise ValueError(f"environment: {twice[0]!r} stands twice; give each a label of its own")
        return self


def load_spec(path: Path) -> Spec:
    """Reads and checks a spec; a relative data file is looked up beside it.

    Raises:
      SpecError: the file cannot be read, is no YAML, or a field is wrong; every mistake is listed with its line.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise SpecError(f"{path}: a spec has at most {_MOST_BYTES:,} bytes")
        text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").read()
    except (OSError, UnicodeDecodeError) as error:
        near = [each.name for each in path.parent.glob("*.y*ml") if suggestion(path.stem, [each.stem]) and not path.exists()]
        why = f"{getattr(error, 'strerror', error)}{suggestion(path.name, near)}"
        raise SpecError(f"{path}: cannot be read: {why}") from error
    return parse_spec(text, str(path), path.parent)


def parse_spec(text: str, source: str, folder: Path) -> Spec:
    """Checks a spec's text; `source` is what its mistakes are reported under."""
    tree, data = yaml_text.read(text, source)
    if not isinstance(data, dict):
        raise SpecError(f"{source}: a spec is a mapping with the fields name, seed, environment, horizon, ...")
    try:
        spec = Spec.model_validate(data, context={"folder": folder})
    except ValidationError as error:
        raise SpecError(explain_all(error.errors(), Spec, tree, source)) from error
    places = [
        item if (file := item.data_file) is None else item.with_file(folder / file).within(folder)
        for item in spec.environment
    ]
    baseline = None if spec.baseline is None else folder / spec.baseline
    parsed = spec.model_copy(update={"environment": places, "baseline": baseline})
    parsed._folder = folder
    parsed._lines = tuple(line_of(("algorithms", i), tree, source) for i in range(len(parsed.algorithms)))
    for i, item in enumerate(parsed.algorithms):
        if isinstance(item, OwnAlgorithmSpec):
            item.noted(line_of(("algorithms", i), tree, source))
    is_list = isinstance(data["environment"], list)
    for i, place in enumerate(parsed.environment):
        place.noted(line_of(("environment", i) if is_list else ("environment",), tree, source))
    return parsed


def is_finite(value: float | None) -> bool:
    """True if a number can be logged: MLflow stores an infinity silently as 1.8e308."""
    return value is not None and math.isfinite(value)


def standing_alone(spec: Spec, text: str) -> str:
    """The spec's text with the places of its files made absolute, so that it can be run from anywhere."""
    places = [item.data_file for item in spec.environment]
    own = {i: item.code for i, item in enumerate(spec.algorithms) if isinstance(item, OwnAlgorithmSpec)}
    made = [item.code_reference for item in spec.environment]
    if not any(places) and not any(made) and not own and spec.baseline is None and spec.tuning is None:
        return text
    _, tree = yaml_text.read(text, "spec")
    listed = tree["environment"] if isinstance(tree["environment"], list) else [tree["environment"]]
    books = [item.book for item in spec.environment]
    for item, place, code, book in zip(listed, places, made, books, strict=True):
        if place is not None:
            item["path"] = str(place.absolute())
        if book is not None and book.file is not None:
            item["data"]["book"] = str(book.file.absolute())
        if code is not None:
            item["file"] = code
    for i, named in own.items():
        tree["algorithms"][i]["file"] = f"{named.path}:{named.name}"
    if spec.baseline is not None:
        tree["baseline"] = str(spec.baseline.absolute())
    if spec.tuning is not None:
        tree["tuning"]["file"] = str(spec.place_of_tuned.absolute())
    # As it is and on one line: a report finds the places, and shows names alone.
    return str(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=sys.maxsize))
