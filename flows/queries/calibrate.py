"""`bandana calibrate`: the noise that a paper prints, the noise that its claim needs, and what the print is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bandana.algorithms.catalog import CATALOG
from bandana.algorithms.papers import CALIBRATIONS, Calibration, Comparison
from bandana.flows.spec.mistakes import SpecError
from bandana.privacy_core.guarantees import PureDP, RenyiDP

ALL_READINGS = "all"
WIDTH = 100
"""Columns of the table where the terminal does not say."""

_OPTIONS = {"is_clipped": "--clip/--no-clip", "has_square": "--square/--no-square"}

Value = float | int | bool | None


def option(parameter: str) -> str:
    """The command line's name for a parameter."""
    return _OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")


def find(name: str) -> Calibration | None:
    """The calibration that an algorithm's name means; None for a non-private algorithm, which has none.

    Raises:
      SpecError: the name is unknown, or stands for several calibrations.
    """
    if name in CALIBRATIONS:
        return CALIBRATIONS[name]
    several = [known for known in CALIBRATIONS if known.startswith(f"{name}-")]
    if len(several) > 1:
        raise SpecError(f"{name} has several calibrations, name one of: {', '.join(several)}")
    if several:
        return CALIBRATIONS[several[0]]
    entries = [entry for entry in CATALOG if entry.name == name]
    if any(entry.promise is None for entry in entries):
        return None
    if entries:
        raise SpecError(f"no source prints a calibration of {name}; there is one of: {', '.join(CALIBRATIONS)}")
    known = dict.fromkeys([*CALIBRATIONS, *(entry.name for entry in CATALOG)])
    raise SpecError(f"unknown algorithm {name!r}; known are: {', '.join(known)}")


def compare(calibration: Calibration, reading: str | None, given: Mapping[str, Value]) -> list[Comparison]:
    """Printed beside tight, in one reading or in all of them.

    Args:
      calibration: from `find`.
      reading: None for the default one, `all` for every one.
      given: the parameters that were given, None for those that were not.

    Raises:
      SpecError: an option is not taken or out of range, or there is no such reading; the message names it.
    """
    given = {name: value for name, value in given.items() if value is not None}
    taken = {parameter.name for parameter in calibration.parameters}
    for name in given:
        if name not in taken:
            raise SpecError(
                f"{calibration.name} does not take {option(name)}; "
                f"it takes {', '.join(option(parameter.name) for parameter in calibration.parameters)}"
            )
    if reading not in (None, ALL_READINGS, *calibration.readings):
        raise SpecError(
            f"--reading of {calibration.name} must be one of {', '.join(calibration.readings)}, or {ALL_READINGS}, "
            f"got {reading!r}"
        )
    readings = list(calibration.readings) if reading == ALL_READINGS else [reading or calibration.default_reading]
    try:
        return [calibration.compare(each, **given) for each in readings]
    except ValueError as error:
        named, _, rest = str(error).partition(" ")
        raise SpecError(f"{option(named)} {rest}" if named in taken else str(error)) from error


def document(calibration: Calibration, found: list[Comparison]) -> dict[str, Any]:
    """The comparison for machines; an infinite number is null."""
    return {
        "algorithm": calibration.name,
        "is_private": True,
        "claim": calibration.promise,
        "source": calibration.source,
        "statement": calibration.statement,
        "parameters": dict(found[0].parameters),
        "readings": [_reading(calibration, comparison) for comparison in found],
    }


def _reading(calibration: Calibration, comparison: Comparison) -> dict[str, Any]:
    return {
        "reading": comparison.reading,
        "meaning": calibration.readings[comparison.reading],
        "claimed_epsilon": comparison.claim.epsilon,
        "mu": _finite(comparison.mu),
        "true_epsilon": _finite(comparison.true_epsilon),
        "true_epsilon_at_least": _finite(comparison.printed.witnessed_epsilon(comparison.claim)),
        "true_epsilon_at_delta": _finite(comparison.true_epsilon_at_delta),
        "is_true": comparison.is_true,
        "noise": [
            {
                "quantity": row.quantity,
                "tight_by": row.tight_by,
                "printed": row.printed,
                "tight": row.tight,
                "factor": row.factor,
            }
            for row in comparison.rows
        ],
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def not_private(name: str) -> str:
    """What is said of a non-private algorithm."""
    return f"{name} is not private: it adds no noise, so there is nothing to calibrate."


def show(calibration: Calibration, found: list[Comparison], console: Console | None = None) -> None:
    """Prints the parameters and, for every reading, the table and the verdict."""
    console = console or Console()
    if not console.is_terminal:
        console.width = WIDTH

    def say(text: str = "", style: str | None = None) -> None:
        console.print(text, style=style, markup=False, highlight=False)

    say(calibration.name, style="bold")
    say(f"{calibration.source}: {calibration.statement}")
    say(f"Claim: {calibration.promise}.")
    say()
    parameters = Table.grid(padding=(0, 2))
    for parameter in calibration.parameters:
        value = _shown(found[0].parameters[parameter.name])
        parameters.add_row("", option(parameter.name), escape(value), escape(parameter.meaning))
    console.print(parameters)
    for comparison in found:
        say()
        say(f"Reading {comparison.reading}: {calibration.readings[comparison.reading]}.")
        console.print(_table(comparison))
        say(worth(comparison))
        say(verdict(comparison), style={True: "green", False: "bold red", None: "yellow"}[comparison.is_true])
    hidden = [name for name in calibration.readings if name not in {comparison.reading for comparison in found}]
    if hidden:
        say()
        say(f"Other readings: {', '.join(hidden)} (--reading NAME, or --reading {ALL_READINGS}).")


def _table(comparison: Comparison) -> Table:
    is_pure = isinstance(comparison.claim, PureDP)
    table = Table(expand=False)
    table.add_column("noise, Laplace scale" if is_pure else "noise, standard deviation")
    table.add_column("tight is")
    for name in ("printed", "tight", "factor"):
        table.add_column(name, justify="right", no_wrap=True)
    last = None
    for row in comparison.rows:
        if last is not None and row.tight_by != last:
            table.add_section()
        table.add_row(
            escape(row.quantity), escape(row.tight_by if row.tight_by != last else ""),
            number(row.printed), number(row.tight), f"x {number(row.factor)}",
        )  # fmt: skip
        last = row.tight_by
    return table


def worth(comparison: Comparison) -> str:
    """What the printed noise exactly gives, and what is claimed, in one sentence each."""
    claim, epsilon = comparison.claim, comparison.true_epsilon
    if isinstance(claim, PureDP):
        least = comparison.printed.witnessed_epsilon(claim)
        exact = f"epsilon {number(epsilon)}" if math.isclose(least, epsilon) else (
            f"an epsilon between {number(least)} (two episodes that attain it) and {number(epsilon)} (proved)"
        )  # fmt: skip
        return f"What is printed gives {exact}. Claimed: epsilon {number(claim.epsilon)}, delta 0."
    if comparison.mu is None or math.isinf(comparison.mu):
        return f"What is printed gives no epsilon at all. Claimed: epsilon {number(claim.epsilon)}."
    exact = f"{number(comparison.mu)}-GDP"
    at_delta = f"epsilon {number(comparison.true_epsilon_at_delta or 0.0)} at delta {_shown(comparison.delta)}"
    if isinstance(claim, RenyiDP):
        order = f"of order {_shown(claim.alpha)}"
        return (
            f"What is printed gives {exact}: a Renyi divergence of {number(epsilon)} {order}, and {at_delta}. "
            f"Claimed: {number(claim.epsilon)} {order}."
        )
    return f"What is printed gives {exact}: {at_delta}. Claimed: epsilon {number(claim.epsilon)}."


def verdict(comparison: Comparison) -> str:
    """Whether the claim holds, and how much noise it wastes or lacks."""
    factor = comparison.rows[0].factor
    if comparison.is_true is None:
        return "Whether the claim is true is not known: the claimed epsilon lies between the two."
    if not comparison.is_true:
        lacks = f", the noise is {number(1 / factor)} times too small" if factor < 1 else ""
        return f"The claim is FALSE{lacks}."
    if math.isclose(factor, 1, rel_tol=1e-6):
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


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
