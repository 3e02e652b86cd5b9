"""What must be found out about anybody's algorithm that keeps the protocol, before it can be audited as any of the catalog.

Canaries stand where the algorithm's own ledger says that a record pays most, the planted faults are those of
`bandana.audits.faults.releases`, and a claim on other neighbors than its mechanisms are made for is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bandana.algorithms.coins import Coins
from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm
from bandana.algorithms.run import run
from bandana.audits.audit import audit
from bandana.audits.claims import ClaimError, restated
from bandana.audits.external.rescaled import NotRescalable, rescaled
from bandana.audits.faults.fault import Control
from bandana.audits.faults.releases import GENERIC
from bandana.audits.outcome import MU, Effort, Outcome, main_quantity
from bandana.audits.seeds import derive
from bandana.audits.testbeds.catalog import NEAR_TEST_BUDGET
from bandana.audits.trial import Trial
from bandana.privacy_core import GaussianDP, LiveLedger, NoSuchConversion, PureDP, Relation, ReproducibleNoise, TrustModel

_PROBED = 64


def _recorded(algorithm: Algorithm, table: Table, seed: int) -> LiveLedger:
    """The ledger of some live runs."""
    root = np.random.SeedSequence(seed)
    ledger = LiveLedger(_PROBED, ReproducibleNoise(root), keeps_transcript=True)
    run(algorithm, table, ledger, coins=Coins(root, _PROBED))
    return ledger


def find_probes(algorithm: Algorithm, table: Table, seed: int) -> tuple[int, ...]:
    """Records to plant canaries at: the first one, the first that is not a first pull, and the one that pays most.

    What a record pays is the sum of the Renyi divergences of the releases that read it, on average over some live runs.
    """
    ledger = _recorded(algorithm, table, seed)
    paid = np.zeros(table.n_users + 1)
    for release in ledger.transcript:
        cost = min(release.mechanism.event.rdp(2.0), 1e6)
        np.add.at(paid, release.records.start, cost)
        np.add.at(paid, release.records.stop, -cost)
    most_costly = int(np.argmax(np.round(np.cumsum(paid)[:-1], 9)))
    return tuple(sorted({0, min(algorithm.n_actions, table.n_users - 1), most_costly}))


def check_scope(algorithm: Algorithm, table: Table, claim: Claim, seed: int) -> None:
    """Refuses a claim on other neighbors, or another trust model, than the algorithm's releases are made for.

    Raises:
      ClaimError: the message says what to change.
    """
    ledger = _recorded(algorithm, table, seed)
    relation = ledger.relation or claim.relation
    try:
        same = claim.gaussian.__class__(1.0, relation=relation).weakened(relation=claim.relation)
        follows = same.mu == 1.0 and relation is not Relation.ADD_REMOVE
    except NoSuchConversion:
        follows = False
    if not follows:
        raise ClaimError(
            f"the claim is for {claim.relation.value!r}, the algorithm's mechanisms bound the change for "
            f"{relation.value!r}: give both one relation"
        )
    if claim.trust is TrustModel.LOCAL:
        widest = max((int((r.records.stop - r.records.start).max(initial=0)) for r in ledger.transcript), default=0)
        if widest > 1:
            raise ClaimError(
                f"the claim is local, but one release reads {widest} records: under local privacy each record noises "
                "its own message; claim trust=central, or release record by record"
            )


def foreign_mechanisms(algorithm: Algorithm, table: Table, seed: int) -> tuple[str, ...]:
    """Names of the mechanisms that are none of privacy_core's: nobody has checked that they draw what they declare."""
    ledger = _recorded(algorithm, table, seed)
    kinds = {type(release.mechanism) for release in ledger.transcript}
    return tuple(sorted(kind.__name__ for kind in kinds if not kind.__module__.startswith("bandana.privacy_core.")))


def at_test_budget(trial: Trial) -> Trial | None:
    """The same algorithm with noise of another size, so that its claim is 1 in its main quantity, mu or pure epsilon.

    Returns:
      None where the claim is near 1, or a mechanism cannot be rescaled.
    """
    stated = trial.claim.stated
    main = main_quantity(stated)
    claimed = trial.claim.gaussian.mu if main == MU else main.limit(stated)
    if NEAR_TEST_BUDGET[0] <= claimed <= NEAR_TEST_BUDGET[1]:
        return None
    try:
        algorithm = rescaled(trial.algorithm, claimed)
        derive(algorithm, trial.table, 0, n_reps=1)
    except NotRescalable:
        return None
    return replace(trial, algorithm=algorithm, claim=restated(trial.claim, GaussianDP(1.0) if main == MU else PureDP(1.0)))


def examine(
    trial: Trial,
    effort: Effort,
    subject: Mapping[str, str],
    about: Mapping[str, str],
    controls: tuple[Control, ...] = GENERIC,
) -> Outcome:
    """Audits an algorithm that keeps the protocol (`bandana.audits.external.conformance` says whether it does), and faults.

    Args:
      trial: the algorithm, its claim and its data.
      effort: how hard to look; too little for the claim is INCONCLUSIVE.
      subject: who is audited, for the evidence.
      about: what the evidence says of the table, the seeds and the code.
      controls: the planted faults.
    """
    caveats: tuple[str, ...] = ()
    if foreign := foreign_mechanisms(trial.algorithm, trial.table, effort.seed):
        caveats = (
            f"it releases through {', '.join(foreign)}, which is none of privacy_core's mechanisms: the likelihood ratio "
            "believes what a mechanism declares of its noise, and nobody has checked that it draws so",
        )
    near_test_budget = at_test_budget(trial)
    return audit(trial, controls, effort, at_test_budget=near_test_budget, subject=subject, about=about, caveats=caveats)
