"""Every algorithm that the product knows: one line a newcomer, with its promise and where that is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from algorithms.bandits.finite_arm import adar_ucb, ucb
from algorithms.protocol import Algorithm
from privacy_core import GaussianDP, Guarantee, Interval, Relation, RenyiDP, TrustModel

AZIZE_BASU = "Azize and Basu, Renyi Differentially Private Bandits"


@dataclass(frozen=True)
class Settings:
    """What a user chooses for one algorithm.

    Attributes:
      n_actions: number of arms.
      reward_range: declared range of a reward.
      beta: exploration.
      calibration: one of the entry's, None for a non-private algorithm.
      privacy: the promise to calibrate to, None for a non-private algorithm.
    """

    n_actions: int
    reward_range: Interval
    beta: float
    calibration: str | None = None
    privacy: RenyiDP | None = None


@dataclass(frozen=True)
class Claim:
    """What the source promises at given settings.

    Attributes:
      stated: the promise in the source's own definition.
      gaussian: the same as GDP: the audit holds its measurement against this.
      statement: in words.
      theorem: where it is printed.
      source: the publication.
      relation: which data sets are neighbors.
      trust: who sees the data.
      unit: what one record is.
    """

    stated: Guarantee
    gaussian: GaussianDP
    statement: str
    theorem: str
    source: str
    relation: Relation
    trust: TrustModel
    unit: str


@dataclass(frozen=True)
class Entry:
    """One catalog line.

    Attributes:
      name: the algorithm's name.
      family: the folder that it stands in.
      privacy_model: none, central, joint or local.
      guarantee: approximate, pure or renyi; None for a non-private algorithm.
      calibrations: names of the noise calibrations.
      claim: the promise in words.
      source: publication and theorem.
      build: settings -> algorithm.
      promise: settings -> claim; None for a non-private algorithm.
      probes: n_actions -> the records at which a changed reward costs most; audits plant their canaries there.
    """

    name: str
    family: str
    privacy_model: str
    guarantee: str | None
    calibrations: tuple[str, ...]
    claim: str
    source: str
    build: Callable[[Settings], Algorithm]
    promise: Callable[[Settings], Claim] | None = None
    probes: Callable[[int], tuple[int, ...]] | None = None

    def summary(self) -> dict[str, object]:
        """The public facts, for `bandana list --json`."""
        shown = ("name", "family", "privacy_model", "guarantee", "calibrations", "claim", "source")
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name in shown}

    def settings(
        self, n_actions: int, reward_range: Interval, beta: float, calibration: str | None, privacy: RenyiDP | None
    ) -> Settings:
        """Checked settings.

        Raises:
          ValueError: a calibration or privacy level is missing, unknown, or given to a non-private algorithm.
        """
        if self.promise is None:
            if calibration is not None or privacy is not None:
                raise ValueError(f"{self.name} is not private: it takes neither a calibration nor a privacy level")
        elif calibration not in self.calibrations:
            raise ValueError(
                f"calibration of {self.name} must be one of {', '.join(self.calibrations)}, got {calibration!r}"
            )
        elif privacy is None:
            raise ValueError(f"{self.name} needs a privacy level")
        return Settings(n_actions, reward_range, beta, calibration, privacy)

    def at_test_budget(self, settings: Settings) -> Settings:
        """The same settings with a promise that is 1-GDP for Gaussian noise: a budget at which audits see small faults."""
        assert settings.privacy is not None
        alpha = settings.privacy.alpha
        return replace(settings, privacy=RenyiDP(alpha, alpha / 2))


def _ucb(settings: Settings) -> Algorithm:
    return ucb(settings.n_actions, settings.beta, settings.reward_range)


def _adar_ucb(settings: Settings) -> Algorithm:
    assert settings.privacy is not None
    assert settings.calibration is not None
    return adar_ucb(
        settings.n_actions, settings.privacy.alpha, settings.privacy.epsilon, settings.beta,
        settings.reward_range, settings.calibration,
    )  # fmt: skip


def _adar_ucb_claim(settings: Settings) -> Claim:
    assert settings.privacy is not None
    return Claim(
        stated=replace(settings.privacy, relation=Relation.REPLACE_REWARD),
        gaussian=GaussianDP.from_renyi(settings.privacy.alpha, settings.privacy.epsilon, relation=Relation.REPLACE_REWARD),
        statement=f"all actions are {settings.privacy}",
        theorem="Theorem 4",
        source=AZIZE_BASU,
        relation=Relation.REPLACE_REWARD,
        trust=TrustModel.CENTRAL,
        unit="one reward (one round)",
    )


CATALOG = (
    Entry(
        name="ucb",
        family="finite_arm",
        privacy_model="none",
        guarantee=None,
        calibrations=(),
        claim="none: the non-private twin",
        source="Auer, Cesa-Bianchi and Fischer (2002), Finite-time analysis of the multiarmed bandit problem, UCB1",
        build=_ucb,
    ),
    Entry(
        name="adar-ucb",
        family="finite_arm",
        privacy_model="central",
        guarantee="renyi",
        calibrations=("printed", "tight"),
        claim="(alpha, epsilon)-RDP of all actions, replace one reward; as GDP, mu = sqrt(2 epsilon / alpha)",
        source=f"{AZIZE_BASU}, Algorithm 2 and Theorem 4",
        build=_adar_ucb,
        promise=_adar_ucb_claim,
        # The first pull, and the first round whose arm was chosen by an index: an episode of one round, always released.
        probes=lambda n_actions: (0, n_actions),
    ),
)


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
