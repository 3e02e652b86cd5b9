"""A claim as a user writes it, `gdp(mu=1, relation=reward)`, and what of it a count of errors can refute.

Five definitions are known, each with the parameters of its own. The relation says which two data sets are neighbors and has
no default: the same number means another promise under another relation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bandana.algorithms.claim import ALL_ACTIONS, Claim
from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP, Relation, RenyiDP, TrustModel
from bandana.privacy_core.checks import level, number, small_delta

KINDS: dict[str, tuple[type[Guarantee], tuple[str, ...]]] = {
    "gdp": (GaussianDP, ("mu",)),
    "rdp": (RenyiDP, ("alpha", "epsilon")),
    "zcdp": (ZCDP, ("rho",)),
    "pure": (PureDP, ("epsilon",)),
    "approx": (ApproxDP, ("epsilon", "delta")),
}
RELATIONS = {
    "reward": Relation.REPLACE_REWARD,
    "record": Relation.REPLACE_RECORD,
    "trajectory": Relation.REPLACE_TRAJECTORY,
    "add-remove": Relation.ADD_REMOVE,
    "user": Relation.USER,
    "pair": Relation.GIVEN_PAIR,
}
TRUST = {trust.value: trust for trust in TrustModel}
_UNITS = {
    Relation.REPLACE_REWARD: "one reward (one round)",
    Relation.REPLACE_RECORD: "one record (all that one user gives)",
    Relation.REPLACE_TRAJECTORY: "one trajectory (one episode)",
    Relation.ADD_REMOVE: "one record",
    Relation.USER: "all records of one user",
    Relation.GIVEN_PAIR: "what the two given data sets differ in",
}
_PAIR = re.compile(r"\bpair\s*=\s*\(")
_ORDERS = np.concatenate([np.linspace(1.05, 2, 20), np.geomspace(2.1, 128, 60)])


class ClaimError(ValueError):
    """A claim that cannot be audited as it is written; the message names the part and what is allowed."""


def parse(
    text: str, *, relation: str | None = None, trust: str | None = None, source: str = "the user", is_published: bool = False
) -> Claim:
    """Reads a claim from its text.

    Args:
      text: such as `rdp(alpha=2, epsilon=1, relation=reward, trust=central)`.
      relation: one of `RELATIONS`, where the text leaves it out.
      trust: central, joint, shuffle or local, where the text leaves it out; central if both do.
      source: who promises it.
      is_published: whether delta may be any that a paper shows, up to 1; at most 0.1 else.

    Returns:
      the claim; where it implies no GDP claim, its statement names the assumption under which it is tested as one.

    Raises:
      ClaimError: unknown definition, missing, unknown or repeated part, a number out of its range, or no relation.
    """
    kind, parts = _split(text)
    guarantee, names = KINDS[kind]
    for name, given, allowed in (("relation", relation, RELATIONS), ("trust", trust, TRUST)):
        if given is not None and parts.setdefault(name, given) != given:
            raise ClaimError(f"claim {text!r}: {name} is {parts[name]!r} in the claim and {given!r} beside it: give it once")
        if name in parts and parts[name] not in allowed:
            raise ClaimError(f"claim {text!r}: {name} must be one of {', '.join(allowed)}, got {parts[name]!r}")
    if missing := [name for name in names if name not in parts]:
        raise ClaimError(f"claim {text!r}: {kind} needs {' and '.join(missing)}, as in {_example(kind)}")
    if "relation" not in parts:
        raise ClaimError(
            f"claim {text!r}: it does not say which data sets are neighbors: add relation=reward, record or trajectory, or "
            "pair=(DATA, NEIGHBOR)"
        )
    numbers = {name: _number(text, name, parts[name]) for name in names}
    scope = {"relation": RELATIONS[parts["relation"]], "trust": TRUST[parts.get("trust", "central")]}
    try:
        for name, value in numbers.items():
            (small_delta if name == "delta" and not is_published else level)(name, value)
        stated: Guarantee = guarantee(**numbers, **scope)  # type: ignore[arg-type]
        gaussian, assumption = as_gdp(stated)
    except ValueError as error:
        raise ClaimError(f"claim {text!r}: {error}") from error
    return Claim(
        stated=stated,
        gaussian=gaussian,
        covers=ALL_ACTIONS,
        theorem="as stated",
        source=source,
        relation=stated.relation,
        trust=stated.trust,
        unit=_UNITS[stated.relation],
        assumption=assumption,
    )


def split_pair(text: str) -> tuple[str, tuple[str, str] | None]:
    """Takes the neighbors that a claim names, as in `gdp(mu=1, pair=(a.npy, b.npy))`, out of it.

    Returns:
      the claim with relation=pair in their place, and how both are written; where it names none, the text, and None.

    Raises:
      ClaimError: the part is no pair, is given twice, or stands beside another relation.
    """
    begin = _PAIR.search(text)
    if begin is None:
        return text, None
    parts, last, depth = [], begin.end(), 0
    for place in range(begin.end(), len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth < 0 or (text[place] == "," and not depth):
            parts.append(text[last:place].strip())
            last = place + 1
        if depth < 0:
            break
    if depth >= 0 or len(parts) != 2 or not all(parts):
        raise ClaimError(f"claim {text!r}: pair must be two data sets in parentheses, as in pair=(a.npy, b.npy)")
    rest = text[: begin.start()] + "relation=pair" + text[last:]
    if rest.count("relation") > 1 or _PAIR.search(rest):
        raise ClaimError(f"claim {text!r}: the pair is the relation: give it once, and no other relation")
    return rest, (parts[0], parts[1])


def unit_of(relation: Relation) -> str:
    """Word for one record, for a claim that names no unit of its own."""
    return _UNITS[relation]


def restated(claim: Claim, stated: Guarantee) -> Claim:
    """The claim with another guarantee in place of its own, for the same neighbors and trust model."""
    stated = replace(stated, relation=claim.relation, trust=claim.trust)
    return replace(claim, stated=stated, gaussian=as_gdp(stated)[0], covers=ALL_ACTIONS, assumption="")


def _split(text: str) -> tuple[str, dict[str, str]]:
    match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", text, re.S)
    if match is None:
        raise ClaimError(f"claim {text!r}: must be of the form NAME(PARAMETER=NUMBER, ...), as in {_example('gdp')}")
    kind = match.group(1).lower()
    if kind not in KINDS:
        raise ClaimError(f"claim {text!r}: unknown definition {match.group(1)!r}; known are {', '.join(KINDS)}")
    allowed = (*KINDS[kind][1], "relation", "trust")
    parts: dict[str, str] = {}
    for part in match.group(2).split(",") if match.group(2).strip() else []:
        name, is_given, value = (word.strip() for word in part.partition("="))
        if not is_given or not name or not value:
            raise ClaimError(f"claim {text!r}: the part {part.strip()!r} must be of the form NAME=VALUE")
        if name not in allowed:
            raise ClaimError(f"claim {text!r}: unknown part {name!r}; {kind} takes {', '.join(allowed)}")
        if name in parts:
            raise ClaimError(f"claim {text!r}: {name} is given twice")
        parts[name] = value
    return kind, parts


def _number(text: str, name: str, value: str) -> float:
    try:
        return number(value)
    except ValueError as error:
        raise ClaimError(f"claim {text!r}: {name} {error}") from None


def _example(kind: str) -> str:
    numbers = {"mu": "1", "alpha": "2", "epsilon": "1", "rho": "0.5", "delta": "1e-5"}
    return f"{kind}({', '.join(f'{name}={numbers[name]}' for name in KINDS[kind][1])}, relation=reward)"


def text_of(stated: Guarantee) -> str:
    """The guarantee as `parse` reads it, every digit kept.

    Raises:
      ClaimError: it has no such form.
    """
    relation = next((name for name, each in RELATIONS.items() if each is stated.relation), None)
    for kind, (guarantee, names) in KINDS.items():
        if type(stated) is guarantee and relation is not None:
            numbers = ", ".join(f"{name}={float(getattr(stated, name))!r}" for name in names)
            return f"{kind}({numbers}, relation={relation}, trust={stated.trust.value})"
    raise ClaimError(f"{stated} ({stated.relation.value}) is no claim that an audit can be asked for")


def as_gdp(stated: Guarantee) -> tuple[GaussianDP, str]:
    """The GDP guarantee that the claim is for Gaussian noise, and what that assumes.

    Returns:
      the guarantee, and an assumption in words; empty where the claim implies the guarantee.
    """
    scope: Mapping[str, Relation | TrustModel] = {"relation": stated.relation, "trust": stated.trust}
    match stated:
        case GaussianDP() | PureDP():
            return stated.gdp(), ""
        case RenyiDP(alpha=alpha, epsilon=epsilon):
            implied = GaussianDP.from_renyi(alpha, epsilon, **scope)  # type: ignore[arg-type]
        case ZCDP(rho=rho):
            implied = GaussianDP.from_renyi(2.0, 2 * rho, **scope)  # type: ignore[arg-type]
        case ApproxDP(epsilon=epsilon, delta=delta):
            implied = GaussianDP.from_epsilon_delta(epsilon, delta, **scope)  # type: ignore[arg-type]
        case _:
            raise ClaimError(f"{stated} promises nothing that can be tested")
    return implied, f"for Gaussian noise the same as {implied}"


def assumes_gaussian_noise(stated: Guarantee) -> bool:
    """True if the claim and its GDP guarantee are the same for Gaussian noise only."""
    return not isinstance(stated, GaussianDP | PureDP)


@dataclass(frozen=True)
class Quantity:
    """A number that counts of errors bound from below, whatever the mechanism (mu: whatever GDP mechanism).

    Attributes:
      name: mu, epsilon (pure, or at `delta`), delta (at `epsilon`), divergence (Renyi, of order `alpha`) or rho.
      delta: of an epsilon; 0 for the pure one.
      alpha: of a divergence.
      epsilon: of a delta.
    """

    name: str
    delta: float = 0.0
    alpha: float = 0.0
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in ("mu", "epsilon", "delta", "divergence", "rho"):
            raise ValueError(f"name must be mu, epsilon, delta, divergence or rho, got {self.name!r}")

    @classmethod
    def of(cls, stated: Guarantee) -> Quantity:
        """The parameter of the claim's own definition."""
        match stated:
            case GaussianDP():
                return cls("mu")
            case RenyiDP(alpha=alpha):
                return cls("divergence", alpha=alpha)
            case ZCDP():
                return cls("rho")
            case ApproxDP(delta=delta):
                return cls("epsilon", delta=delta)
        return cls("epsilon")

    def __str__(self) -> str:
        if self.name == "divergence":
            return f"divergence of order {self.alpha:g}"
        if self.name == "delta":
            return f"delta at epsilon {self.epsilon:g}"
        return f"epsilon at delta {self.delta:g}" if self.name == "epsilon" and self.delta else self.name

    def limit(self, stated: Guarantee) -> float:
        """Limit that the claim itself sets, without an assumption.

        Raises:
          NoSuchConversion: the claim bounds no such number.
        """
        match self.name:
            case "mu":
                return stated.gdp().mu
            case "epsilon":
                return stated.epsilon_at(self.delta) if self.delta else stated.pure().epsilon
            case "delta" if isinstance(stated, ApproxDP) and stated.epsilon <= self.epsilon:
                return stated.delta
            case "delta":
                return math.inf
            case "divergence":
                return stated.renyi(self.alpha).epsilon
        return stated.zcdp().rho


def binary_divergence(fpr: float, fnr: float, alpha: float) -> float:
    """Renyi divergence of order alpha that a test with these error rates proves, the larger one of both directions.

    By data processing D_alpha of the two laws is at least that of the two Bernoulli laws of the test's answer; it falls in
    both rates while fpr + fnr < 1, so that upper limits on the rates give a lower limit on it. 0 beyond.
    """
    return float(_divergences(fpr, fnr, np.array([alpha]))[0])


def binary_rho(fpr: float, fnr: float) -> float:
    """The rho of zCDP that a test with these error rates proves: the largest of D_alpha / alpha over a grid of orders."""
    return float((_divergences(fpr, fnr, _ORDERS) / _ORDERS).max())


def _divergences(fpr: float, fnr: float, alpha: FloatArray) -> FloatArray:
    """(n_orders,) Renyi divergences of both sides; see `binary_divergence`."""
    if fpr + fnr >= 1:
        return np.zeros(len(alpha))

    def one_way(p: float, q: float) -> FloatArray:
        """D_alpha(Bernoulli(1 - p) || Bernoulli(q)), p and q the error rates."""
        right = alpha * np.log1p(-p) + (1 - alpha) * (np.log(q) if q else -np.inf)
        wrong = alpha * (np.log(p) if p else -np.inf) + (1 - alpha) * np.log1p(-q)
        return np.asarray(np.logaddexp(right, wrong) / (alpha - 1))

    return np.asarray(np.maximum(0.0, np.maximum(one_way(fnr, fpr), one_way(fpr, fnr))))
