r"""UCB-VI in all its forms: without noise, jointly and locally private; as known from the papers, and with the least noise.

What is released, and with which noise:

  joint, pure, as-known        PUCB. Visits, transitions and rewards apart, Laplace noise on the nodes of a binary tree,
                               and its bonus: as a rule it exceeds H for any K in reach, so that the policy explores and
                               never uses what it learned. The noise is twice the paper's, which is right for
                               neighbors that add or remove an episode (`bandana.algorithms.papers.tabular_rl`).
  joint, pure, tight           Rows without visits, rewards less 1/2: half of that sensitivity, 3 H in L1; the nodes of a
                               tree over looks; and what `UCBVI` proves.
  joint, approximate, tight    One release for all counters of all steps, Gaussian noise at sqrt(3 H) in L2, visits with
                               twice the noise at no cost, on a factorized sum: one event, for any number of looks.
  local, pure, as-known        LDP-OBI's message: the three families, Laplace noise of scale 6 H / epsilon on every entry.
  local, pure and approximate, tight   The rows above, noised by each user at 3 H in L1, or sqrt(3 H) in L2.

DP-UCBVI is each tight form with the bonus `bernstein`. Its papers print noise that keeps 2 epsilon under replacement, as
PUCB does: epsilon / (2 H log K) for each tree, and Laplace noise of scale 2 H / epsilon on each entry of a message (Lemmas
5.1 and 5.4 of the one with self-play), where visits and transitions move by 4 H in L1. Its rewards are known; ours are not.

Departures from the papers. The policy is planned after batches of users, floor(sqrt K) as a rule: PUCB and LDP-OBI plan
after every episode, `looks = K`, which is many times as slow; when to plan is public. Rewards and transitions may differ
from step to step in all forms; LDP-OBI is stated for processes that do not, and adds up all steps; its form `as-known` has
the width that `UCBVI` proves. Values are moved into [0, H - h + 1], those of PUCB into [0, H]. In place of Qiao and
Wang's post-processing by linear programs, which makes counts a distribution for the sake of their bonus, `UCBVI` bounds
what noise does to means and variances.
"""

from __future__ import annotations

from dataclasses import dataclass

from bandana.algorithms.papers import tabular_rl
from bandana.algorithms.regression.norms import Bounded
from bandana.algorithms.rl.tabular.statistics import Errors, Layout, published, with_visits
from bandana.algorithms.rl.tabular.ucb_vi import BONUSES, UCBVI
from bandana.privacy_core import (
    ApproxDP,
    Exact,
    Factorized,
    FactorizedSum,
    Gaussian,
    Laplace,
    LocalSum,
    PhaseSum,
    PhaseTotal,
    PrivateSum,
    PureDP,
    Releases,
    Structure,
    Tree,
    TreeSum,
    TrustModel,
    calibrate,
)
from bandana.privacy_core.checks import at_least, one_of


@dataclass(frozen=True)
class UCBVISettings(Bounded):
    """Settings that all forms of UCB-VI share.

    Raises ValueError where one is out of its range; the message names it.

    Attributes: as in `UCBVI`, and
      looks: how often the policy is planned, at most; None: after every floor(sqrt K) episodes.
      bonus: one of `BONUSES`; None: hoeffding.
      failure: of the width; None: 1 / horizon.
    """

    n_states: int
    n_actions: int
    episode_length: int
    horizon: int
    looks: int | None = None
    bonus: str | None = None
    failure: float | None = None
    beta_scale: float = 1.0

    def __post_init__(self) -> None:
        at_least("horizon", self.horizon, 1)
        if self.looks is not None:
            at_least("looks", self.looks, 1)
        if self.bonus is not None:
            one_of("bonus", self.bonus, BONUSES)

    @property
    def schedule(self) -> tuple[int, ...]:
        """After how many episodes the policy is planned."""
        wanted = self.looks or max(1, int(self.horizon**0.5))
        size = -(-self.horizon // wanted)
        return tuple(range(size, self.horizon, size))

    def twin(self) -> UCBVI:
        """The non-private twin: the same algorithm on exact statistics."""
        return self._built(PhaseTotal(PhaseSum(Exact())), Layout(self.n_states), tuple(Errors() for _ in self.schedule))

    def private(self, promise: ApproxDP | PureDP, trust: TrustModel, calibration: str) -> UCBVI:
        """The form that keeps a promise.

        Args:
          promise: approximate privacy, with Gaussian noise, or pure privacy, with Laplace noise.
          trust: joint or local.
          calibration: `as-known`, for pure privacy, or `tight`; see the module.

        Raises:
          ValueError: an argument or a setting out of its range; the message names it.
        """
        one_of("trust", trust, (TrustModel.JOINT, TrustModel.LOCAL))
        if isinstance(promise, ApproxDP):
            one_of("calibration", calibration, ("tight",))
            return self._gaussian(promise, trust)
        is_known = one_of("calibration", calibration, ("as-known", "tight")) == "as-known"
        layout = published(self.n_states) if is_known else Layout(self.n_states)
        sensitivity, steps = layout.sensitivity_l1(self.episode_length), max(1, len(self.schedule))
        if trust is TrustModel.LOCAL:
            multiplier = tabular_rl.message_multiplier(promise.epsilon) if is_known else calibrate(promise, Releases(1))
            mechanism = Laplace(sensitivity, multiplier)
            errors = [layout.laplace_errors(mechanism.scale, look, self._share) for look in self.schedule]
            return self._built(LocalSum(mechanism), layout, tuple(errors))
        if is_known and self.bonus == "bernstein":
            raise ValueError("bonus must be hoeffding, or left out, for as-known: that is PUCB with its own bonus")
        own = tabular_rl.pucb_multiplier(promise.epsilon, self.horizon) if is_known else calibrate(promise, Tree(steps))
        mechanism = Laplace(sensitivity, own)
        looks = range(1, len(self.schedule) + 1)
        errors = [layout.laplace_errors(mechanism.scale, look.bit_count(), self._share) for look in looks]
        return self._built(TreeSum(mechanism, steps), layout, tuple(errors), promise if is_known else None)

    def _gaussian(self, promise: ApproxDP, trust: TrustModel) -> UCBVI:
        layout, steps = with_visits(self.n_states), max(1, len(self.schedule))
        is_local = trust is TrustModel.LOCAL
        structure: Structure = Releases(1) if is_local else Factorized(steps)
        mechanism = Gaussian(layout.sensitivity_l2(self.episode_length), calibrate(promise, structure))
        sums: LocalSum | FactorizedSum = LocalSum(mechanism) if is_local else FactorizedSum(mechanism, steps)
        closings = self.schedule if is_local else range(1, len(self.schedule) + 1)
        errors = [layout.gaussian_errors(sums.noise_deviation(closing), self._share) for closing in closings]
        return self._built(sums, layout, tuple(errors))

    @property
    def _share(self) -> float:
        """Failure probability of one error in one row at one look: all of them, three or four, share a third."""
        rows, n_errors = self.episode_length * self.n_states * self.n_actions, 4 if self.bonus == "bernstein" else 3
        return self._failure / (3 * n_errors * rows * max(1, len(self.schedule)))

    def _built(self, sums: PrivateSum, layout: Layout, errors: tuple[Errors, ...], print_of: PureDP | None = None) -> UCBVI:
        length, width = self.episode_length, None
        caps = tuple(float(length - h) for h in range(length + 1))
        if print_of is not None:
            caps = (float(length),) * length + (0.0,)
            size = length, self.n_states, self.n_actions, self._failure
            width = (
                tabular_rl.pucb_error(print_of.epsilon, self.horizon, *size),
                tabular_rl.pucb_log(self.horizon, self._failure),
            )
        return UCBVI(
            self.n_states, self.n_actions, length, self.horizon, self.schedule, sums, layout, errors, caps, self._failure,
            self.bonus or BONUSES[0], self.beta_scale, width,
        )  # fmt: skip
