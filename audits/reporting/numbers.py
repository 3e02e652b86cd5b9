"""Formatting of numbers and quantities: four significant digits, thousands separators, powers of ten."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bandana.audits.documents.report import Environment

_UP = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
NONE = "–"
MU, EPSILON, PURE, DIVERGENCE, RHO = "mu", "epsilon at delta", "epsilon", "divergence of order", "rho"
DELTA = "delta at epsilon"
"""Kinds of quantities, as a document begins their names."""
_NAMES = {
    MU: "µ", PURE: "pure ε", RHO: "ρ", EPSILON: "ε at δ = {}", DIVERGENCE: "Rényi divergence of order {}",
    DELTA: "δ at ε = {}",
}  # fmt: skip
_SYMBOLS = {MU: "µ", PURE: "ε", RHO: "ρ", EPSILON: "ε", DIVERGENCE: "D", DELTA: "δ"}


def number(value: float | None) -> str:
    """Four significant digits; a dash for a number that does not exist.

    >>> number(3.14159), number(100000), number(1e-5), number(1234567.0), number(None), number(-0.5)
    ('3.142', '100,000', '10⁻⁵', '1.235 × 10⁶', '–', '−0.5')
    """
    if value is None:
        return NONE
    if value == 0:
        return "0"
    if abs(value) < 1e-3 or (abs(value) >= 1e6 and not isinstance(value, int)):
        mantissa, exponent = f"{abs(value):.3e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        power = "10" + str(int(exponent)).translate(_UP)
        text = power if mantissa == "1" else f"{mantissa} × {power}"
    elif isinstance(value, int):
        text = f"{abs(value):,}"
    else:
        digits = max(0, 3 - math.floor(math.log10(abs(value))))
        rounded = float(f"{abs(value):.3e}")
        text = f"{rounded:,.{digits}f}"
        if "." in text:
            text = text.rstrip("0").rstrip(".")
    return ("−" if value < 0 else "") + text


def power_of_ten(value: float) -> str:
    """Label of a tick on a logarithmic axis.

    >>> power_of_ten(0.01), power_of_ten(100.0), power_of_ten(1e5)
    ('0.01', '100', '10⁵')
    """
    exponent = round(math.log10(value)) if value > 0 else 0
    return "10" + str(exponent).translate(_UP) if not -3 < exponent < 4 else f"{10.0**exponent:,.{max(0, -exponent)}f}"


def kind_of(quantity: str) -> str:
    """The kind of a quantity, without its parameter.

    >>> kind_of("epsilon at delta 1e-05") == EPSILON, kind_of("epsilon") == PURE
    (True, True)
    """
    return next(kind for kind in (EPSILON, DIVERGENCE, MU, PURE, RHO, DELTA) if quantity.startswith(kind))


def unit_of(environments: Sequence[Environment]) -> str:
    """Unit of interaction in the plural: rounds, episodes, or both.

    >>> unit_of([{"unit": "rounds"}]), unit_of([{"unit": "episodes"}, {"unit": "rounds"}])
    ('rounds', 'rounds or episodes')
    """
    return " or ".join(sorted({environment["unit"] for environment in environments}, reverse=True))


def name_of(quantity: str) -> str:
    """A quantity's name in a sentence.

    >>> name_of("mu"), name_of("epsilon at delta 1e-05"), name_of("divergence of order 2")
    ('µ', 'ε at δ = 10⁻⁵', 'Rényi divergence of order 2')
    """
    kind = kind_of(quantity)
    parameter = quantity.removeprefix(kind).strip()
    return _NAMES[kind].format(number(float(parameter)) if parameter else "")


def symbol_of(quantity: str) -> str:
    """A quantity's symbol, before a number.

    >>> symbol_of("mu"), symbol_of("divergence of order 2")
    ('µ', 'D')
    """
    return _SYMBOLS[kind_of(quantity)]
