"""Every algorithm that the product knows, in each trust model and with each guarantee, and those of installed packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from bandana.algorithms.bandits.best_arm import entries as best_arm
from bandana.algorithms.bandits.capri import entries as capri
from bandana.algorithms.bandits.contextual import entries as contextual
from bandana.algorithms.bandits.finite_arm import batch_entries as finite_arm_batches
from bandana.algorithms.bandits.finite_arm import entries as finite_arm
from bandana.algorithms.bandits.kernel import entries as kernel
from bandana.algorithms.bandits.linear import entries as linear
from bandana.algorithms.entry import Entry
from bandana.algorithms.plugins import ALGORITHMS, Found, loaded
from bandana.algorithms.rl.linear_mdp import entries as linear_mdp
from bandana.algorithms.rl.mixture import entries as mixture
from bandana.algorithms.rl.tabular import entries as tabular
from bandana.privacy_core.checks import suggestion

NONE = "none"
"""The trust model of a non-private algorithm."""
_NAMED = ("joint", "shuffle", "local")
"""Trust models that a label names; a single curator is what everybody assumes."""


def labelled(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries with unique labels, and with the names that their seeds are derived from."""
    listed = []
    for entry in entries:
        same = [other for other in entries if other.name == entry.name]
        model = entry.privacy_model
        guarantees = [other.guarantee for other in same if other.privacy_model == model]
        pure = entry.guarantee if entry.guarantee != guarantees[0] else ""
        twin = "non-private" if model == NONE and len(same) > 1 else ""
        words = (entry.name, model if model in _NAMED else "", pure or "", twin)
        seeds = (entry.name, pure or "", model if model in _NAMED else "")
        label, seed_name = " ".join(filter(None, words)), "-".join(filter(None, seeds))
        listed.append(replace(entry, label=label, seed_name=seed_name if entry.seed_name == entry.name else entry.seed_name))
    return tuple(listed)


_FAMILIES = (
    finite_arm, finite_arm_batches, best_arm, linear, contextual, kernel, capri, mixture, linear_mdp,
    tabular,
)  # fmt: skip
CATALOG: tuple[Entry, ...] = labelled([entry for family in _FAMILIES for entry in family.ENTRIES])
"""Entries of one algorithm stand together, the non-private one first."""


@cache
def added() -> tuple[tuple[Entry, ...], tuple[Found, ...]]:
    """Additions of installed packages: their entries, and the entry points that cannot be used.

    An entry point names an `Entry`, or a list or tuple of them; names that are taken already are refused.
    """
    entries: list[Entry] = []
    broken = []
    for point in loaded(ALGORITHMS):
        listed = point.thing if isinstance(point.thing, list | tuple) else [point.thing]
        taken = {entry.name for entry in (*CATALOG, *entries)}
        if point.error:
            broken.append(point)
        elif not listed or not all(isinstance(entry, Entry) for entry in listed):
            broken.append(point.broken(f"it must be a bandana.algorithms.entry.Entry, or several, got {point.thing!r:.60}"))
        elif same := [entry.name for entry in listed if entry.name in taken]:
            broken.append(point.broken(f"the name {same[0]!r} is taken"))
        else:
            entries += [replace(entry, package=point.package) for entry in labelled(listed)]
    return tuple(entries), tuple(broken)


def known() -> tuple[Entry, ...]:
    """The catalog, and what installed packages add."""
    return (*CATALOG, *added()[0])


def names() -> list[str]:
    """Each algorithm once, in the catalog's order, and those of installed packages."""
    return list(dict.fromkeys(entry.name for entry in known()))


def of_name(name: str) -> list[Entry]:
    """All entries of an algorithm.

    Raises:
      ValueError: there is no such algorithm; an old name is answered with what replaces it.
    """
    if matches := [entry for entry in known() if entry.name == name]:
        return matches
    if former := next((entry for entry in CATALOG if entry.seed_name == name), None):
        model = f"`model: {former.privacy_model}`"
        privacy = f" and `privacy: {EXAMPLES[former.guarantee]}`" if former.guarantee else ""
        raise ValueError(f"{name} is now `algorithm: {former.name}` with {model}{privacy}")
    broken = "".join(f"; {point}" for point in added()[1])
    near = suggestion(name, names()) or ";"
    raise ValueError(f"unknown algorithm {name!r}{near} `bandana list` shows all {len(names())}{broken}")


EXAMPLES = {
    "renyi": "{alpha: 2, epsilon: [1]}",
    "pure": "{epsilon: [1]}",
    "approximate": "{epsilon: [1], delta: 1.0e-5}",
    "zcdp": "{rho: [0.5]}",
}
"""Guarantee -> how a spec asks for it."""


def find(name: str, model: str | None = None, guarantee: str | None = None) -> Entry:
    """One entry of the catalog.

    Args:
      name: algorithm, or an entry's label.
      model: trust model; may be left out where the algorithm is private in one only, or in none.
      guarantee: may be left out where the algorithm has one only in that trust model.

    Raises:
      ValueError: no such entry, or several.
    """
    if (model, guarantee) == (None, None) and (same := [entry for entry in known() if entry.label == name]):
        return same[0]
    every = of_name(name)
    wanted = [entry for entry in every if model in (None, entry.privacy_model) and guarantee in (None, entry.guarantee)]
    private = [entry for entry in wanted if entry.is_private]
    candidates = wanted if len(wanted) == 1 or not private else private
    if not candidates:
        raise ValueError(f"{name} has no such entry; it has: {_forms(every)}")
    if len(candidates) > 1:
        raise ValueError(f"{name} has several entries, {_forms(candidates)}: name the trust model and the guarantee")
    return candidates[0]


def _forms(entries: Sequence[Entry]) -> str:
    return ", ".join(f"{entry.privacy_model} {entry.guarantee or ''}".strip() for entry in entries)
