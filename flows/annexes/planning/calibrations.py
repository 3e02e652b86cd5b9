"""`bandana calibrate`: the noise of an algorithm's calibrations side by side, and the privacy that each of them is worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bandana.algorithms.catalog import CATALOG
from bandana.algorithms.entry import AS_KNOWN, PRINTED, Entry
from bandana.algorithms.environments.episodes import Table as Data
from bandana.algorithms.environments.episodes import random_episodes
from bandana.algorithms.environments.linear import random_arms
from bandana.algorithms.environments.tables import ContextTable, random_table, sphere_table
from bandana.algorithms.environments.worst_mdps import N_STATES, linear_bed, mixture_bed
from bandana.algorithms.environments.worst_pools import POOL_KERNEL, SMOOTH, worst_pool
from bandana.algorithms.papers.readings import EXTRAS, READINGS, Reading, Values
from bandana.algorithms.problem import ARMS, CONTEXTUAL, EPISODIC, FINITE, KERNEL, LINEAR, MIXTURE, POOLED, Problem
from bandana.audits.summary import finite
from bandana.flows.annexes.planning.played_noise import Column, Quantity, epsilon_of, played
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError, unknown
from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, Guarantee, Interval, PureDP, RenyiDP
from bandana.privacy_core.checks import at_least, level, non_negative, order, positive, small_delta
from bandana.privacy_core.checks import number as real

ALL_READINGS = "all"
WIDTH = 100
"""Columns of the table where the terminal does not say."""

_OPTIONS = {"is_clipped": "--clip/--no-clip", "has_square": "--square/--no-square", "n_actions": "--actions"}
_SET = {name for entry in CATALOG for name in entry.parameters} - {"ridge", "switch", "norm_bound", "n_features"}
_DIMENSIONS = {LINEAR: 2, CONTEXTUAL: 5, KERNEL: 2, POOLED: 2}
_CHECKS = {
    "epsilon": level, "delta": small_delta, "alpha": order, "rho": level, "reward_bound": positive,
    "norm_bound": positive, "noise_scale": non_negative, "s_max": positive, "sigma_max": positive,
}  # fmt: skip
_AT_LEAST_TWO = ("horizon", "n_actions", "dimension", "episode_length")


class Form(NamedTuple):
    """One algorithm under one trust model and guarantee."""

    algorithm: str
    model: str
    guarantee: str


def form_of(entry: Entry) -> Form:
    """The entry's algorithm, trust model and guarantee."""
    return Form(entry.name, entry.privacy_model, entry.guarantee or "none")


def _split(name: str) -> Form:
    """The parts of a name that was in use before, such as `gp-ucb-joint`; empty where it has none."""
    parts = name.split("-")
    model, guarantee = (next((p for p in parts if p in words), "") for words in (("joint", "shuffle", "local"), ("pure",)))
    return Form("-".join(p for p in parts if p not in (model, guarantee)), model, guarantee)


class Comparison(NamedTuple):
    """All calibrations of one algorithm, in one reading of what its paper prints; the printed one, if any, is the first."""

    entry: Entry
    reading: str
    meaning: str
    values: Values
    columns: tuple[Column, ...]


def option(parameter: str) -> str:
    """The command line's name for a parameter."""
    return f"--set {parameter}" if parameter in _SET else _OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")


def find(name: str, model: str | None = None, guarantee: str | None = None) -> list[Entry]:
    """The private entries of an algorithm, under one trust model and guarantee where they are named; none if it has none.

    Raises:
      SpecError: the name is unknown, or it has no such model or guarantee.
    """
    of = [(form_of(entry), entry) for entry in CATALOG if form_of(entry).algorithm == name]
    if not of:
        known, old = dict.fromkeys(form_of(entry).algorithm for entry in CATALOG), _split(name)
        if old.algorithm not in known:
            raise SpecError(unknown("algorithm", name, list(known), "`bandana list`"))
        line = [f"{flag} {word}" for flag, word in (("--model", old.model), ("--guarantee", old.guarantee)) if word]
        raise SpecError(f"{name} is now written as: bandana calibrate {' '.join([old.algorithm, *line])}")
    private = [(form, entry) for form, entry in of if entry.promise is not None]
    entries = [entry for form, entry in private if model in (None, form.model) and guarantee in (None, form.guarantee)]
    if private and not entries:
        wanted = " ".join(word for word in (model, guarantee) if word)
        forms = ", ".join(f"--model {form.model} --guarantee {form.guarantee}" for form, _ in private)
        raise SpecError(f"{name} has no form that is {wanted}; it has: {forms}")
    return entries


def defaults(entry: Entry) -> dict[str, Any]:
    """The parameters that `compare` takes, with their defaults; None stands for what follows from others."""
    form, kind = form_of(entry), entry.plays_on[0]
    level = {"pure": ("epsilon",), "approximate": ("epsilon", "delta"), "renyi": ("alpha", "epsilon", "delta"),
             "zcdp": ("rho", "delta")}  # fmt: skip
    known: dict[str, Any] = {"alpha": 2.0, "epsilon": 1.0, "delta": 1e-5, "rho": 0.5}
    values = {name: known[name] for name in level[form.guarantee]}
    values["horizon"] = 10_000 if kind in ARMS else 1000
    if kind in EPISODIC:
        values |= {"episode_length": 5, "dimension": 4, "n_actions": 2}
    else:
        values |= {"n_actions": 3, "reward_bound": None} | ({"dimension": _DIMENSIONS[kind]} if kind != FINITE else {})
    own = {name: parameter.default for name, parameter in entry.parameters.items() if name != "reading"}
    return {**values, **own, **({"n_features": 16} if "n_features" in own else {}), **EXTRAS.get(form, {})}


def readings(entry: Entry) -> Mapping[str, Reading]:
    """The readings of the entry's print; the first is the default."""
    if AS_KNOWN in entry.calibrations:
        return {AS_KNOWN: Reading("as other papers or public code have it; we could not read what the paper prints")}
    if PRINTED not in entry.calibrations:
        return {"tight": Reading("no paper prints this noise; it is calibrated to the claim")}
    return READINGS.get(form_of(entry), {"printed": Reading("as printed")})


def assigned(texts: Iterable[str]) -> dict[str, float | str]:
    """Parameters of NAME=VALUE texts: numbers where a value is one, else words.

    Raises:
      SpecError: a text has no `=`.
    """
    given: dict[str, float | str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise SpecError(f"--set takes NAME=VALUE, such as n_batches=8; got {text!r}")
        try:
            given[name.replace("-", "_")] = int(real(value)) if value.isdigit() else real(value)
        except ValueError:
            given[name.replace("-", "_")] = value
    return given


def compare(entry: Entry, reading: str | None, given: Values) -> list[Comparison]:
    """Plays every calibration of an entry, in one reading of its print or in all of them.

    Args:
      entry: a private one.
      reading: None for the default one, `all` for every one.
      given: the parameters that were given, None for those that were not.

    Raises:
      SpecError: an option is not taken or out of range, or there is no such reading; the message names it.
    """
    given, known, names = {k: v for k, v in given.items() if v is not None}, defaults(entry), readings(entry)
    label = " ".join(form_of(entry))
    for name in given:
        if name not in known:
            raise SpecError(f"{label} does not take {option(name)}; it takes {', '.join(map(option, known))}")
    if reading not in (None, ALL_READINGS, *names):
        raise SpecError(f"--reading of {label} must be one of {', '.join(names)}, or {ALL_READINGS}, got {reading!r}")
    values = known | given
    wanted = list(names) if reading == ALL_READINGS else [reading or next(iter(names))]
    try:
        for name in (name for name in known if values[name] is not None):
            if name in _CHECKS:
                _CHECKS[name](name, values[name])
            elif name in _AT_LEAST_TWO:
                at_least(name, values[name], 2)
        return [_compared(entry, name, values) for name in wanted]
    except OverflowError as error:
        raise SpecError(f"{label}: these parameters lead out of the range of floating-point numbers") from error
    except ValueError as error:
        named, _, rest = str(error).partition(" ")
        raise SpecError(f"{option(named)} {rest}" if named in known else str(error)) from error


def _compared(entry: Entry, name: str, values: Values) -> Comparison:
    reading = readings(entry)[name]
    if values.get("reward_bound", 0.0) is None:
        values = {**values, "reward_bound": values.get("norm_bound", 1.0)}
    bound = values.get("reward_bound") if reading.reward_bound is None else reading.reward_bound(values)
    problem, data = _problem(entry, {**values, "reward_bound": bound})
    own = {parameter: values[parameter] for parameter in entry.parameters if values.get(parameter) is not None}
    own |= {"reading": name} if "reading" in entry.parameters else {}
    columns = []
    for calibration in entry.calibrations:
        settings = entry.settings(problem, calibration, _level(entry, values), **own)
        assert entry.promise is not None
        is_print = calibration.startswith((PRINTED, AS_KNOWN))
        columns.append(played(
            calibration, entry.build(settings), data, entry.promise(settings), reading if is_print else None, values
        ))  # fmt: skip
    return Comparison(entry, name, reading.meaning, values, tuple(columns))


def _level(entry: Entry, values: Values) -> Guarantee:
    match entry.guarantee:
        case "renyi":
            return RenyiDP(values["alpha"], values["epsilon"])
        case "pure":
            return PureDP(values["epsilon"])
        case "zcdp":
            return ZCDP(values["rho"])
    return ApproxDP(values["epsilon"], values["delta"])


def _problem(entry: Entry, values: Values) -> tuple[Problem, Data]:
    """A problem of the kind that the entry plays on, and data to play."""
    kind, n, rounds, d = entry.plays_on[0], values["n_actions"], values["horizon"], values.get("dimension", 0)
    if kind in EPISODIC:
        length, unit = values["episode_length"], Interval(0.0, 1.0)
        model = (mixture_bed if kind == MIXTURE else linear_bed)(d, n, entry.guarantee == "pure", horizon=length)
        return Problem(n, unit, rounds, model=model), random_episodes(rounds, length, N_STATES, n, unit, 0)
    span, seed = Interval(-values["reward_bound"], values["reward_bound"]), np.random.SeedSequence(0)
    if kind in ARMS:
        features = tuple(map(tuple, random_arms(n, d, seed).tolist())) if kind == LINEAR else None
        return Problem(n, span, rounds, features), random_table(rounds, n, span, 0)
    if kind == POOLED:
        pool = worst_pool(entry.audit_pool, n, d)
        brought = pool.points[pool.drawn(rounds, np.random.Generator(np.random.SFC64(0)))]
        data = ContextTable(brought, random_table(rounds, n, span, 0).rewards, span)
        return Problem(n, span, rounds, dimension=d, kernel=SMOOTH, pool=pool), data
    kernel = POOL_KERNEL if kind == KERNEL else None
    return Problem(n, span, rounds, dimension=d, kernel=kernel), sphere_table(rounds, n, d, span, seed)


def document(comparisons: list[Comparison]) -> JsonObject:
    """The comparisons of one entry for machines; an infinite number is null.

    The fields of a reading are those of its print, the first calibration; `calibrations` has them for each.
    """
    entry, values = comparisons[0].entry, comparisons[0].values
    return {
        **form_of(entry)._asdict(),
        "is_private": True,
        "claim": entry.claim,
        "source": entry.source,
        "statement": comparisons[0].columns[0].promise.theorem,
        "parameters": dict(values),
        "readings": [
            {
                "reading": comparison.reading,
                "meaning": comparison.meaning,
                **_worth(comparison.columns[0], values),
                "noise": list(_rows(comparison.columns)),
                "calibrations": [_worth(column, values) for column in comparison.columns],
            }
            for comparison in comparisons
        ],
    }


def _worth(column: Column, values: Values) -> JsonObject:
    proved, is_pure = column.proved, isinstance(column.claim, PureDP)
    return {
        "calibration": column.calibration,
        "claimed_epsilon": None if isinstance(column.claim, ZCDP) else column.claimed,
        "claimed_rho": column.claimed if isinstance(column.claim, ZCDP) else None,
        "accounted_epsilon": finite(epsilon_of(column.accounted, column.claim)),
        "mu": None if isinstance(proved, PureDP) else finite(proved.mu),
        "true_epsilon": finite(epsilon_of(proved, column.claim)),
        "true_epsilon_at_least": finite(epsilon_of(column.at_least, column.claim)),
        "true_epsilon_at_delta": None if is_pure else finite(proved.epsilon_at(values["delta"])),
        "is_true": column.is_true,
        "noise": {_in_words([quantity]): size for quantity, size in column.noise.items()},
    }


def _rows(columns: tuple[Column, ...]) -> Iterable[JsonObject]:
    """The noise of the print beside the same noise at exactly the claim, and beside each other calibration's."""
    first = columns[0]
    same = {} if first.factor is None else {quantity: size / first.factor for quantity, size in first.noise.items()}
    for name, tight in (("the same noise, scaled", same), *((c.calibration, c.noise) for c in columns[1:])):
        for quantity in (quantity for quantity in first.noise if quantity in tight):
            one, other = first.noise[quantity], tight[quantity]
            yield {
                "quantity": _in_words([quantity]),
                "tight_by": name,
                "printed": one,
                "tight": other,
                "factor": one / other,
            }


def _in_words(quantities: list[Quantity]) -> str:
    """Quantities of one kind that are alike, in words: what they fall on, and the steps."""
    where, parts = quantities[0][0], " and ".join(dict.fromkeys(what for _, what, _ in quantities if what))
    steps = sorted({step for _, _, step in quantities if step is not None})
    span = f" of step {steps[0]}" if len(steps) == 1 else f" of steps {steps[0]} to {steps[-1]}" if steps else ""
    return f"{where}: {parts}{span}" if parts else where


def not_private(name: str) -> str:
    """Sentence on a non-private algorithm."""
    return f"{name} is not private: it adds no noise, so there is nothing to calibrate."


def show(comparisons: list[Comparison], meanings: Mapping[str, str], console: Console | None = None) -> None:
    """Prints the parameters and, for every reading, the noise and what each calibration is worth.

    Args:
      comparisons: of one entry.
      meanings: parameter -> what it is, in words.
      console: None for standard output.
    """
    console = console or Console()
    if not console.is_terminal:
        console.width = WIDTH

    def say(text: str = "", style: str | None = None) -> None:
        console.print(text, style=style, markup=False, highlight=False)

    entry, values = comparisons[0].entry, comparisons[0].values
    say(" ".join(form_of(entry)), style="bold")
    say(f"{entry.source}.")
    say(f"Claim: {entry.claim}.")
    say()
    parameters, own = Table.grid(padding=(0, 2)), entry.parameters
    for name, value in values.items():
        meaning, shown = (own[name].meaning, own[name].otherwise) if name in own else (meanings[name], "-")
        parameters.add_row("", option(name), escape(shown if value is None else _shown(value)), escape(meaning))
    console.print(parameters)
    for comparison in comparisons:
        say()
        say(f"Reading {comparison.reading}: {comparison.meaning}.")
        console.print(_table(comparison))
        for column in comparison.columns:
            say(worth(column, values))
            say(f"  {verdict(column)}", style={True: "green", False: "bold red", None: "yellow"}[column.is_true])
    hidden = [name for name in readings(entry) if name not in {comparison.reading for comparison in comparisons}]
    if hidden:
        say()
        say(f"Other readings: {', '.join(hidden)} (--reading NAME, or --reading {ALL_READINGS}).")


def _table(comparison: Comparison) -> Table:
    """Quantities by calibrations; quantities that are alike in all calibrations stand in one row."""
    columns = comparison.columns
    is_pure = isinstance(columns[0].claim, PureDP)
    table = Table("Laplace scale, or deviation of a sum" if is_pure else "noise, standard deviation")
    for column in columns:
        table.add_column(column.calibration, justify="right", no_wrap=True)
    alike: dict[tuple[str, ...], list[Quantity]] = {}
    for quantity in dict.fromkeys(quantity for column in columns for quantity in column.noise):
        sizes = [column.noise.get(quantity) for column in columns]
        alike.setdefault((quantity[0], *(_over(size, sizes[-1]) for size in sizes)), []).append(quantity)
    for (_, *cells), quantities in alike.items():
        table.add_row(escape(_in_words(quantities)), *cells)
    return table


def _over(size: float | None, last: float | None) -> str:
    """A size, and how many times the last calibration's it is."""
    if size is None:
        return "-"
    return number(size) if last in (None, size) else f"{number(size)} (x {number(size / last)})"


def worth(column: Column, values: Values) -> str:
    """Says what a calibration gives, and what is claimed, in one sentence each."""
    claim, proved, name = column.claim, column.proved, column.calibration
    epsilon, least, summed = (epsilon_of(x, claim) for x in (proved, column.at_least, column.accounted))
    apart = "" if math.isclose(summed, epsilon) else f" (the ledger adds up to {number(summed)})"
    if math.isinf(epsilon):
        return f"{name} gives no epsilon at all. Claimed: {claim}."
    if isinstance(claim, PureDP):
        exact = f"epsilon {number(epsilon)}" if math.isclose(least, epsilon) else (
            f"an epsilon between {number(least)} (two episodes that attain it) and {number(epsilon)} (proved)"
        )  # fmt: skip
        return f"{name} gives {exact}{apart}. Claimed: epsilon {number(claim.epsilon)}, delta 0."
    assert isinstance(proved, GaussianDP)
    at_delta = f"epsilon {number(proved.epsilon_at(values['delta']))} at delta {_shown(values['delta'])}"
    gives = f"{name} gives {number(proved.mu)}-GDP: "
    if isinstance(claim, RenyiDP):
        order = f"of order {_shown(claim.alpha)}"
        claimed = f"Claimed: {number(claim.epsilon)} {order}."
        return f"{gives}a Renyi divergence of {number(epsilon)} {order}, and {at_delta}. {claimed}"
    if isinstance(claim, ZCDP):
        return f"{gives}{number(epsilon)}-zCDP, and {at_delta}. Claimed: {number(claim.rho)}-zCDP."
    return f"{gives}{at_delta}{apart}. Claimed: epsilon {number(claim.epsilon)}."


def verdict(column: Column) -> str:
    """Says if the claim holds, and how much noise it wastes or lacks."""
    factor = column.factor
    if column.is_true is None:
        return "Whether the claim is true is not known: the claimed epsilon lies between the two."
    if not column.is_true:
        lacks = f", the noise is {number(1 / factor)} times too small" if factor is not None else ""
        return f"The claim is FALSE{lacks}."
    if factor is None or math.isclose(factor, 1, rel_tol=1e-6):
        return "The claim is true, with exactly the noise that it needs."
    return f"The claim is true, with {number(factor)} times the noise that it needs."


def number(value: float) -> str:
    """Four significant digits, with commas where they help."""
    if math.isinf(value):
        return "infinite"
    if value != 0 and not 1e-3 <= abs(value) < 1e7:
        return f"{value:.3e}"
    digits = 3 - math.floor(math.log10(abs(value))) if value else 0
    return (
        f"{round(value, digits):,.{max(0, digits)}f}".rstrip("0").rstrip(".")
        if digits > 0
        else f"{round(value, digits):,.0f}"
    )


def _shown(value: float | str | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value) if isinstance(value, str) else f"{value:g}"
