"""Public tools that turn scores into a lower bound on epsilon, one function each.

An interpreter that has the tools runs this file; it needs nothing of ours, and imports a tool only to run it.

    python benchmarks/public_tools.py --list
    python benchmarks/public_tools.py < request.json

A request names a tool, two .npy files of shape (repeats, n), delta and level. Each repeat is answered at once by one line of
JSON: the bound and its processor seconds, or an error. Scores are larger where the neighbor is likelier.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
_TINY = 1e-12
"""A delta for tools that refuse 0: what is not (epsilon, 1e-12)-DP is not epsilon-DP either."""

_MOST_FAILURES = 3


class Tool(NamedTuple):
    """A public tool, as it is called here.

    Attributes:
      package: its distribution.
      module: what is imported.
      method: which of its bounds, in words.
      lower: (data, neighbor, delta, level, seed) -> epsilon.
      is_gdp: whether the bound assumes a GDP mechanism.
      is_pure: whether it takes no delta.
    """

    package: str
    module: str
    method: str
    lower: Callable[[Scores, Scores, float, float, int], float]
    is_gdp: bool = False
    is_pure: bool = False


def _jax_auditor(data: Scores, neighbor: Scores) -> tuple[Any, Any]:
    auditing: Any = import_module("jax_privacy.auditing")
    return auditing, auditing.CanaryScoreAuditor(neighbor, data)


def jax_bonferroni(data: Scores, neighbor: Scores, delta: float, level: float, seed: int) -> float:
    return float(_jax_auditor(data, neighbor)[1].epsilon_clopper_pearson(level, delta))


def jax_split(data: Scores, neighbor: Scores, delta: float, level: float, seed: int) -> float:
    auditing, auditor = _jax_auditor(data, neighbor)
    return float(auditor.epsilon_clopper_pearson(level, delta, threshold_strategy=auditing.Split(seed=seed)))


def jax_multi_split(data: Scores, neighbor: Scores, delta: float, level: float, seed: int) -> float:
    auditing, auditor = _jax_auditor(data, neighbor)
    return float(auditor.epsilon_clopper_pearson(level, delta, threshold_strategy=auditing.MultiSplit(seed=seed)))


def jax_one_run(data: Scores, neighbor: Scores, delta: float, level: float, seed: int) -> float:
    auditing, auditor = _jax_auditor(data, neighbor)
    strategy = auditing.Split(seed=seed)
    return float(auditor.epsilon_one_run(level, max(delta, _TINY), threshold_strategy=strategy))


def jax_gdp(data: Scores, neighbor: Scores, delta: float, level: float, seed: int) -> float:
    return float(_jax_auditor(data, neighbor)[1].epsilon_from_gdp(level, delta))


def jax_raw_counts(data: Scores, neighbor: Scores, delta: float, level: float, seed: int) -> float:
    return float(_jax_auditor(data, neighbor)[1].epsilon_raw_counts(delta=delta))


def _lower_of(false_positives: int, false_negatives: int, n: int, delta: float, level: float, method: str) -> float:
    package: Any = import_module("privacy_estimates")
    counts_of: Any = import_module("privacy_estimates.utils").AttackResults
    counts = counts_of(FN=false_negatives, FP=false_positives, TN=n - false_positives, TP=n - false_negatives)
    return float(package.compute_eps_lo(counts, delta, level, method))


def _estimate(method: str) -> Callable[[Scores, Scores, float, float, int], float]:
    """The tool takes the counts of one attack: its threshold is chosen on the first half, by the tool's own bound."""

    def lower(data: Scores, neighbor: Scores, delta: float, level: float, seed: int) -> float:
        half = len(data) // 2
        train, train_n = np.sort(data[:half]), np.sort(neighbor[:half])
        tried = np.unique(np.quantile(np.concatenate([train, train_n]), np.linspace(0.001, 0.999, 100), method="lower"))
        false_positives = half - np.searchsorted(train, tried)
        false_negatives = np.searchsorted(train_n, tried)
        promised = [
            _lower_of(int(a), int(b), half, delta, level, "beta")
            for a, b in zip(false_positives, false_negatives, strict=True)
        ]
        threshold = tried[int(np.argmax(promised))]
        test, test_n = data[half:], neighbor[half:]
        return _lower_of(int((test >= threshold).sum()), int((test_n < threshold).sum()), len(test), delta, level, method)

    return lower


def _opake(data: Scores, neighbor: Scores) -> Any:
    auditing: Any = import_module("opake.auditing")
    flips: Any = import_module("opake.auditing.types").CoinFlip
    names = np.arange(len(data) + len(neighbor))
    is_in = names >= len(data)
    partition = flips(len(names), names, is_in, names[is_in], names[~is_in])
    scores = auditing.canary_scores(np.concatenate([data, neighbor]), canary_indices=names)
    return auditing.one_run(scores, coin_flip=partition)


def opake_any(data: Scores, neighbor: Scores, delta: float, level: float, seed: int) -> float:
    return float(_opake(data, neighbor).eps_delta().epsilon_at(delta=delta, significance=level))


def opake_gdp(data: Scores, neighbor: Scores, delta: float, level: float, seed: int) -> float:
    return float(_opake(data, neighbor).gdp().epsilon_at(delta=delta, significance=level))


def tensorflow_all(data: Scores, neighbor: Scores, delta: float, level: float, seed: int) -> float:
    """Its default, all thresholds, calls what newer scikit-learn releases no longer have: they are named here."""
    module: Any = import_module("tensorflow_privacy.privacy.privacy_tests.epsilon_lower_bound")
    values = np.unique(np.concatenate([data, neighbor]))
    thresholds = (values[1:] + values[:-1]) / 2  # on a score that occurs it would miscount
    found = module.EpsilonLowerBound(neighbor, data, level, thresholds=thresholds)
    bounds = found.compute_epsilon_lower_bound(module.BoundMethod.CLOPPER_PEARSON, k=1)
    return max(0.0, float(bounds[0])) if len(bounds) else 0.0


_JAX, _ESTIMATES, _OPAKE = "jax-privacy", "privacy-estimates", "opake-auditing"
_TENSORFLOW = "tensorflow-empirical-privacy"

TOOLS = {
    "jax-bonferroni": Tool(
        _JAX, "jax_privacy.auditing", "Clopper-Pearson, Bonferroni over its thresholds", jax_bonferroni
    ),
    "jax-split": Tool(_JAX, "jax_privacy.auditing", "Clopper-Pearson, threshold from half", jax_split),
    "jax-multi-split": Tool(_JAX, "jax_privacy.auditing", "Clopper-Pearson, median of 100 splits", jax_multi_split),
    "jax-one-run": Tool(_JAX, "jax_privacy.auditing", "guesses of one run, threshold from half", jax_one_run),
    "jax-raw": Tool(_JAX, "jax_privacy.auditing", "raw counts, an estimate", jax_raw_counts),
    "estimates-beta": Tool(
        _ESTIMATES, "privacy_estimates", "Clopper-Pearson, threshold from half", _estimate("beta")
    ),
    "estimates-jeffreys": Tool(
        _ESTIMATES, "privacy_estimates", "Jeffreys intervals, threshold from half", _estimate("jeffreys")
    ),
    "estimates-joint": Tool(
        _ESTIMATES, "privacy_estimates", "joint posterior, threshold from half", _estimate("joint-beta")
    ),
    "opake-any": Tool(_OPAKE, "opake.auditing", "order statistics of one run", opake_any),
    "tensorflow-all": Tool(
        _TENSORFLOW, "tensorflow_privacy.privacy.privacy_tests.epsilon_lower_bound",
        "Clopper-Pearson, best of all thresholds", tensorflow_all, is_pure=True,
    ),
    "jax-gdp": Tool(_JAX, "jax_privacy.auditing", "Clopper-Pearson, Bonferroni over its thresholds", jax_gdp, is_gdp=True),
    "opake-gdp": Tool(_OPAKE, "opake.auditing", "order statistics of one run", opake_gdp, is_gdp=True),
}  # fmt: skip


def versions() -> dict[str, str]:
    """Tool -> version of its package, for those that can be imported here."""
    found: dict[str, str] = {}
    is_there: dict[str, bool] = {}
    for name, tool in TOOLS.items():
        if tool.module not in is_there:
            try:
                version(tool.package)
                import_module(tool.module)
                is_there[tool.module] = True
            except (ImportError, PackageNotFoundError):
                is_there[tool.module] = False
        if is_there[tool.module]:
            found[name] = version(tool.package)
    return found


def main() -> int:
    answers = sys.stdout
    with redirect_stdout(sys.stderr):  # whatever a tool prints is no answer
        if sys.argv[1:] == ["--list"]:
            print(json.dumps(versions()), file=answers, flush=True)
            return 0
        asked = json.load(sys.stdin)
        tool = TOOLS[asked["tool"]]
        import_module(tool.module)
        data, neighbor = np.load(asked["data"]), np.load(asked["neighbor"])
        failed = 0
        for repeat in range(len(data)):
            start = time.process_time()
            try:
                bound = tool.lower(data[repeat], neighbor[repeat], asked["delta"], asked["level"], repeat)
                answer: dict[str, Any] = {"epsilon": bound, "seconds": time.process_time() - start}
            except Exception as error:  # a tool that fails is a result
                answer, failed = {"error": f"{type(error).__name__}: {error}"}, failed + 1
            print(json.dumps(answer), file=answers, flush=True)
            if failed == _MOST_FAILURES:
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
