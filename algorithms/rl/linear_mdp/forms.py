"""Batched LSVI-UCB in all its forms: without noise, jointly private, purely so; as printed, and with exact noise.

What `printed` and `tight` are made of. Each part can be exchanged alone (`PARTS`), and every combination keeps the claim:

  noise     `printed` constants are 1e3 to 1e5 times what the exact accountant asks for at the same claim. `tight` spends the
            claim exactly, and splits it between matrices and vectors so that the bonus of a direction that was seen K / d
            times is smallest. See `bandana.algorithms.rl.linear_mdp.noise`.
  sum       `tree` over looks, or a `factorized` sum; pure privacy has the tree alone.
  width     `printed`: beta of Appendix E.1 with c_K = d Upsilon and the printed bounds on the noise, or `exact`: what
            `BatchedLSVI` proves, with exact quantiles.
  values    `printed` moves all of them into [0, H]. `centered` moves those of step h into [0, H - h + 1], which is all they
            can be, and subtracts from targets the middle of the interval in which they lie, (H - h + 1) / 2, and adds it to
            Q again. A constant is linear in the features of a linear MDP, as <phi, sum_s mu_h(s)> = 1, so nothing is lost,
            and the sensitivity of u is halved: H - h + 1 in place of 2 (H - h + 1).
  schedule  `static`, as the paper's, or `determinant` (`bandana.algorithms.rl.linear_mdp.batches`), whose updates are capped
            by `most_switches`: the budget is split among so many. Where nothing is said of batches, `tight` takes whichever
            has the smaller proved bound on the regret of all K episodes, and determinants where neither has one below the
            trivial one, K times all that an episode can lose.

Matrix and vector prices are added up as those of separate releases; `papers.readings.separate_statistics` has the joint
supremum, which is somewhat smaller: no user is worst for both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.optimize import minimize_scalar

from bandana.algorithms.mdp.models import LinearModel
from bandana.algorithms.papers.luyo import lsvi_batches, lsvi_pure_batches
from bandana.algorithms.regression.norms import Bounded
from bandana.algorithms.regression.private_ridge import regularizer
from bandana.algorithms.rl.linear_mdp.batched_lsvi import BatchedLSVI
from bandana.algorithms.rl.linear_mdp.batches import Schedule, determinant, geometric, most_switches, static
from bandana.algorithms.rl.linear_mdp.noise import GOE_WEIGHT, Noise, Printed, Releases
from bandana.algorithms.rl.linear_mdp.regret_bound import is_proved, regret_bound
from bandana.privacy_core import ApproxDP, Exact, PhaseSum, PhaseTotal, PureDP
from bandana.privacy_core.checks import at_least, failure_of, one_of, positive

SCHEMES = ("static", "geometric", "determinant")
"""When the policy is updated."""
PURE_PARTS: Mapping[str, Mapping[str, str]] = {
    "printed": {"noise": "printed", "width": "printed", "values": "printed", "schedule": "static"},
    "tight": {"noise": "tight", "width": "exact", "values": "centered", "schedule": "determinant"},
}
"""Calibration of pure privacy -> part -> option."""
PARTS: Mapping[str, Mapping[str, str]] = {
    "printed": {**PURE_PARTS["printed"], "sum": "tree"},
    "tight": {**PURE_PARTS["tight"], "sum": "factorized"},
}
"""Calibration of approximate privacy -> part -> option."""


@dataclass(frozen=True)
class LSVI(Bounded):
    """Settings that all forms of batched LSVI-UCB share.

    Raises ValueError where one is out of its range; the message names it.

    Attributes: as in `BatchedLSVI`, and
      batches: the scheme, one of `SCHEMES` (`bandana.algorithms.rl.linear_mdp.batches`); None: static for `printed`, the
        one of static and determinant with the smaller bound for `tight` (see the module), and determinant for the twin.
      n_batches: one more than there are, or may be, updates; None: the scheme's own number. For static batches that is B of
        Appendix E.1 (epsilon of the claim, and 1 for the twin), for determinants `most_switches`.
      switch: C, of the determinant scheme.
      ridge: lambda over d; the paper has lambda = d.
      failure: of the width; None: 1 / horizon.
    """

    model: LinearModel
    horizon: int
    batches: str | None = None
    n_batches: int | None = None
    switch: float = 1.0
    ridge: float = 1.0
    failure: float | None = None
    beta_scale: float = 1.0

    def __post_init__(self) -> None:
        failure_of(self.failure, self.horizon)
        positive("ridge", self.ridge)
        if self.batches is not None:
            one_of("batches", self.batches, SCHEMES)
        if self.n_batches is not None:
            at_least("n_batches", self.n_batches, 1)

    def twin(self) -> BatchedLSVI:
        """The non-private twin: the same algorithm on exact statistics."""
        schedule = self._schedule("determinant", lsvi_batches(1.0, *self._size))
        norms = (0.0,) * (len(schedule.looks) + 1)
        schedule = replace(schedule, most_updates=int(self._most_updates(schedule, norms)))
        noise = Noise(PhaseTotal(PhaseSum(Exact())), (Exact(),) * self._length, GOE_WEIGHT, norms, (0.0,) * self._length)
        return self._built(schedule, noise, is_centered=True, is_exact=True)

    def private(self, promise: ApproxDP | PureDP, calibration: str | Mapping[str, str]) -> BatchedLSVI:
        """The form under joint privacy with the given promise.

        Args:
          promise: approximate privacy, with Gaussian noise, or pure privacy, with Laplace noise on the upper triangles and
            on the vectors.
          calibration: an option for each part, see the module, or
            `printed`, approximate: Appendix E.1. Static batches; node noise (Z + Z^T)/2, sigma_Lambda and sigma_u as
              printed; beta = 24 H sqrt(d (lambda + c_K)) log chi with chi of Lemma 20; shift c_K + Upsilon, where Upsilon
              has B_0 where sqrt B_0 would do. c_K is defined nowhere: eq. (20) needs c_K >= d Upsilon, and the stated rate
              no more, so c_K = d Upsilon. At any K up to 1e9 and more its bonus exceeds H: the policy explores and never
              uses what it learned.
            `printed`, pure: Appendix E.3, which gives orders; with the constants of E.2's proof and its L2 sensitivities,
              as `lsvi_pure_printed_scales` derives them. The L1 sensitivities that Laplace noise needs are larger by up to
              sqrt(d (d + 3)/2) / 2 and sqrt d. What is wasted elsewhere covers that up to about d = 16; beyond, with many
              updates, the claim is false and the ledger, which knows the right sensitivities, shows more than the claim.
            `tight`: any of the three schemes. For pure privacy with the right L1 sensitivities: sqrt(d (d + 3)/2) a step for
              a matrix (`matrix_l1_bound`), sqrt d (H - h + 1) for a vector.

        Raises:
          ValueError: an argument or a setting out of its range; the message names it.
        """
        is_pure = isinstance(promise, PureDP)
        named = PURE_PARTS if is_pure else PARTS
        if isinstance(calibration, str):
            calibration = named[one_of("calibration", calibration, tuple(named))]
        if calibration["schedule"] == "static" and self.batches not in (None, "static"):
            raise ValueError(f"printed is made for static batches: batches must be static or left out, got {self.batches!r}")
        own = (lsvi_pure_batches if is_pure else lsvi_batches)(promise.epsilon, *self._size)
        is_open = self.batches is None and self.n_batches is None and self.beta_scale >= 1
        if not (is_open and own > 1 and calibration == named["tight"]):
            return self._private(promise, calibration, own)
        forms = [replace(self, batches=scheme).private(promise, calibration) for scheme in ("determinant", "static")]
        return min(forms, key=lambda form: float(regret_bound(form, self.horizon)) if is_proved(form) else math.inf)

    def _private(self, promise: ApproxDP | PureDP, calibration: Mapping[str, str], own: int) -> BatchedLSVI:
        """The form of a calibration, in its own schedule or in the one asked for; `own` is the paper's number of batches."""
        schedule = self._schedule(calibration["schedule"], own)
        is_centered, is_exact = calibration["values"] == "centered", calibration["width"] == "exact"
        targets = self._caps if is_centered else (2 * (self._length + 1.0),) * (self._length - 1) + (2.0,)
        releases = Releases(
            promise, self.model.dimension, len(schedule.looks), targets, calibration.get("sum") == "factorized",
            self.horizon, self._failure,
        )  # fmt: skip
        n_batches = self.n_batches or own
        if calibration["noise"] == "tight":
            schedule, noise = self._tight(releases, schedule, is_centered)
            matrix_sd, vector_sds = None, [float(mechanism.scale) for mechanism in noise.vectors]
        else:
            printed = releases.printed(n_batches, static(self.horizon, n_batches).most_updates)
            schedule, noise = self._printed(releases, schedule, printed)
            matrix_sd = releases.printed_matrix_sd(printed)
            vector_sds = releases.printed_vector_sds(printed, schedule.most_updates)
        if not is_exact:
            n_batches = n_batches if calibration["schedule"] == "static" else len(schedule.looks) + 1
            noise = noise._replace(
                matrix_norms=releases.printed_matrix_norms(noise.matrices, n_batches, matrix_sd),
                vector_norms=releases.printed_vector_norms(vector_sds),
            )
        return self._built(schedule, noise, is_centered, is_exact)

    @property
    def _length(self) -> int:
        return self.model.horizon

    @property
    def _size(self) -> tuple[int, int, int]:
        return self.horizon, self.model.horizon, self.model.dimension

    @property
    def _caps(self) -> tuple[float, ...]:
        """H - h + 1: the largest value from each step on, which is the largest target too."""
        return tuple(float(self._length - h) for h in range(self._length))

    def _schedule(self, usual: str, own: int) -> Schedule:
        """The schedule of the scheme that was asked for, or of the usual one."""
        match self.batches or usual:
            case "static":
                return static(self.horizon, own if self.n_batches is None else self.n_batches)
            case "geometric":
                return geometric(self.horizon, self.n_batches)
            case _:
                return determinant(self.horizon, self.n_batches, self.switch)

    def _most_updates(self, schedule: Schedule, norms: Sequence[float]) -> float:
        """Number of updates that are paid for, not rounded: those of the schedule, or as many as determinants allow."""
        if schedule.log_growth is None or self.n_batches is not None:
            return schedule.most_updates
        d = self.model.dimension
        regularizers = [regularizer(self.ridge * d, norm) for norm in norms[1:]]
        return most_switches(schedule, d, self._length, regularizers)

    def _built(self, schedule: Schedule, noise: Noise, is_centered: bool, is_exact: bool) -> BatchedLSVI:
        """The algorithm, with the proved width or with beta of Appendix E.1, for c_K = d Upsilon."""
        horizon, length, d = self._size
        caps = self._caps if is_centered else (float(length),) * length
        centers = tuple(cap / 2 for cap in caps) if is_centered else (0.0,) * length
        width, margin = None, 1.0
        if not is_exact:
            least, margin = self.ridge * d + d * noise.matrix_norms[1], float(d)
            longest = max(1.0, 2 * length * math.sqrt(d * horizon / least) + noise.vector_norms[0] / least)
            chi = 24**2 * 18 * horizon**2 * d * longest * length / self._failure
            width = 24 * length * math.sqrt(d * least) * math.log(chi)
        return BatchedLSVI(
            self.model, horizon, schedule, *noise, caps, centers, self.ridge * d, margin, self._failure, width,
            self.beta_scale,
        )  # fmt: skip

    def _printed(self, releases: Releases, schedule: Schedule, printed: Printed) -> tuple[Schedule, Noise]:
        """Noise at the budget that the printed one really spends, and the schedule with its cap on updates."""
        matrices = releases.matrices(releases.printed_matrix_multiplier(printed))
        norms = releases.matrix_norms(matrices)
        schedule = replace(schedule, most_updates=int(self._most_updates(schedule, norms)))
        vectors = releases.vectors(releases.printed_vector_multipliers(printed, schedule.most_updates))
        return schedule, Noise(
            matrices, vectors, releases.diagonal_weight, norms, releases.vector_norms(vectors, schedule.most_updates)
        )

    def _tight(self, releases: Releases, schedule: Schedule, is_centered: bool) -> tuple[Schedule, Noise]:
        """Noise at exactly the promise, and the schedule with its cap on updates.

        The budget is split so that the sum of the steps' widths at the last look is smallest: once K is large, bonuses are
        in proportion to it. The matrices' share decides how large their noise is, hence how often determinants can grow.
        """

        def at(share: float, scale: float, updates: float | None = None) -> tuple[float, Noise]:
            matrices = releases.matrices(releases.matrix_multiplier(share, scale))
            norms = releases.matrix_norms(matrices)
            if updates is None:
                updates = self._most_updates(schedule, norms)
            vectors = releases.vectors(releases.vector_multipliers(share, scale, updates))
            vector_norms = releases.vector_norms(vectors, updates)
            return updates, Noise(matrices, vectors, releases.diagonal_weight, norms, vector_norms)

        def size(share: float) -> float:
            _, noise = at(share, 1 / releases.level)
            built = replace(self, beta_scale=1.0)._built(schedule, noise, is_centered, is_exact=True)
            return float(built.widths(len(schedule.looks)).sum())

        solution = minimize_scalar(size, bounds=(1e-3, 1 - 1e-3), method="bounded", options={"xatol": 1e-4})
        share = float(solution.x)
        updates = int(at(share, 1 / releases.level)[0])
        _, noise = at(share, releases.calibrated(share, updates), updates)
        return replace(schedule, most_updates=updates), noise
