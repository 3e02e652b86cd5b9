"""Every algorithm that the product knows: one line a newcomer, with its promise and where that is printed."""

from __future__ import annotations

from bandana.algorithms.bandits.capri import entries as projected_kernel
from bandana.algorithms.bandits.contextual import entries as contextual
from bandana.algorithms.bandits.finite_arm import entries as finite_arm
from bandana.algorithms.bandits.kernel import entries as kernel
from bandana.algorithms.bandits.kernel import pooled_entries
from bandana.algorithms.bandits.linear import entries as linear
from bandana.algorithms.entry import Entry
from bandana.algorithms.rl.linear_mdp import entries as linear_mdp
from bandana.algorithms.rl.mixture import entries as mixture_mdp

CATALOG: tuple[Entry, ...] = (
    *finite_arm.ENTRIES, *linear.ENTRIES, *contextual.ENTRIES, *kernel.ENTRIES, *pooled_entries.ENTRIES,
    *projected_kernel.ENTRIES, *mixture_mdp.ENTRIES, *linear_mdp.ENTRIES,
)  # fmt: skip


def find(name: str, privacy_model: str | None = None) -> Entry:
    """The catalog's entry of that name.

    Args:
      name: algorithm.
      privacy_model: needed only where an algorithm exists in several.

    Raises:
      ValueError: no such entry, or several.
    """
    found = [e for e in CATALOG if e.name == name and privacy_model in (None, e.privacy_model)]
    if not found:
        known = ", ".join(sorted({entry.name for entry in CATALOG}))
        raise ValueError(f"unknown algorithm {name!r}; known are: {known}")
    if len(found) > 1:
        models = ", ".join(entry.privacy_model for entry in found)
        raise ValueError(f"{name} exists in the privacy models {models}: name one as privacy_model")
    return found[0]
