"""All that `bandana audit-catalog` audits: the private algorithms of the catalog, and each building block on its own bed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial

from bandana.algorithms.catalog import CATALOG
from bandana.algorithms.entry import Entry, Settings
from bandana.audits.claims import parse, text_of
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.fault import Control
from bandana.audits.faults.releases import GENERIC
from bandana.audits.faults.sums import CONTROLS_OF_SUMS
from bandana.audits.outcome import Effort
from bandana.audits.testbeds import blocks
from bandana.audits.testbeds.catalog import at_test_budget, bed_of, bed_settings, is_near_test_budget
from bandana.audits.trial import Trial
from bandana.privacy_core import Relation, TrustModel
from bandana.privacy_core.checks import suggestion

EFFORT = Effort(replays=100_000, confidence=0.9996, delta=1e-5, examples=100, seed=0)
"""The usual effort of each audit: the bounds of up to 125 subjects hold together at 95 %."""
ROUNDS = 64
OWN_SIZES = {"lin-priv tight": (31, 1.5)}
"""Label -> rounds of its bed and multiple of the usual replays, where faults need others: 31 rounds fill a whole tree."""
_TABLE_SEED = 0
_LOCAL_BEDS = frozenset({"local", "gram-local"})


@dataclass(frozen=True)
class Subject:
    """One thing to audit, with all that its audit needs.

    Attributes:
      label: unique name.
      algorithm: its name in the catalog, or the bed's.
      source: the publication; for a building block, what it is.
      calibration: how its noise was calibrated; None where there is one way.
      trial: the algorithm, its claim and its data.
      at_test_budget: the same at a budget of about mu = 1; None where the trial's is such a one.
      controls: its planted faults.
      parameters: public ones, for the report.
    """

    label: str
    algorithm: str
    source: str
    calibration: str | None
    trial: Trial
    at_test_budget: Trial | None
    controls: tuple[Control, ...]
    parameters: Mapping[str, object] = field(default_factory=dict)


def subjects() -> dict[str, partial[Subject]]:
    """Label -> what builds the subject, the catalog first."""
    builders: dict[str, partial[Subject]] = {}
    for entry in CATALOG:
        for calibration in entry.calibrations if entry.promise is not None else ():
            builders[f"{entry.label} {calibration}"] = partial(_algorithm, entry, calibration)
    return builders | {f"block {name}": partial(_block, name) for name in blocks.trials()}


def selected(names: Sequence[str]) -> list[str]:
    """The labels that names select, in the order of `subjects`; all of them where there are no names.

    Args:
      names: labels, their first words (`gp-ucb` is all of its forms, `gp-ucb joint` those of one trust model, `block` every
        building block), or patterns such as `*pure*`, as of a shell.

    Raises:
      ValueError: a name that selects nothing; the message names the nearest label.
    """
    labels = list(subjects())
    chosen: set[str] = set()
    for name in names:
        matches = [label for label in labels if f"{label} ".startswith(f"{name} ") or fnmatchcase(label, name)]
        if not matches:
            near = suggestion(name, labels) or ";"
            raise ValueError(
                f"{name!r} selects nothing{near} name algorithms of `bandana list`, or block for the building blocks"
            )
        chosen.update(matches)
    return [label for label in labels if not names or label in chosen]


def _algorithm(entry: Entry, calibration: str) -> Subject:
    """An algorithm of the catalog at a budget of about mu = 1 ((2, 1)-RDP is 1-GDP), on fair coins."""
    assert entry.promise is not None
    assert entry.probes is not None
    label = f"{entry.label} {calibration}"
    problem, table = bed_of(entry, OWN_SIZES.get(label, (ROUNDS,))[0], _TABLE_SEED)
    promise, probes = entry.promise, entry.probes(problem.n_actions)

    def trial(chosen: Settings) -> Trial:
        return Trial(entry.build(chosen), promise(chosen), table, probes)

    settings = bed_settings(entry, problem, calibration)
    is_near = is_near_test_budget(entry, settings, table)
    return Subject(
        label=label,
        algorithm=entry.name,
        source=entry.source,
        calibration=calibration,
        trial=trial(settings),
        at_test_budget=None if is_near else trial(at_test_budget(entry, settings, table)),
        controls=CONTROLS.get(entry.label, GENERIC),
        parameters=settings.shown(),
    )


def _block(name: str) -> Subject:
    bed = blocks.trials()[name]
    trust = TrustModel.LOCAL if name in _LOCAL_BEDS else TrustModel.CENTRAL
    stated = bed.claim.weakened(relation=Relation.REPLACE_RECORD)
    claim = parse(text_of(stated).replace("trust=central", f"trust={trust.value}"), source=f"building block {name!r}")
    return Subject(
        label=f"block {name}",
        algorithm=name,
        source=str(type(getattr(bed.algorithm, "sums", bed.algorithm)).__name__),
        calibration=None,
        trial=Trial(bed.algorithm, claim, bed.table, bed.probes),
        at_test_budget=None,
        controls=CONTROLS_OF_SUMS.get(name, GENERIC),
    )
