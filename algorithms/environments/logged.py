"""Real logged data as bandit environments: a randomized trial of cash incentives in HIV testing.

Thornton (2008), "The demand for, and impact of, learning HIV status": after a door-to-door HIV test in rural Malawi,
people drew a voucher at random (tinc, in US dollars, up to about 3) that was paid if they came to learn their result. The
reward is 1 if the person came (`got`). That is a medical fact about a person, and a reward that must stay private. The
data are those of the package `causaldata` (MIT). The voucher was randomized, so within an arm people are exchangeable, and
an arm's mean is the causal response to it.

Two uses, for two purposes:

`resampled_arms` draws, for each pull of an arm, one of that arm's people uniformly *with replacement*. It is exactly the
bandit whose arms are the empirical distributions: an episode's sum is Binomial(n, share who came), the mean reward of a
pull of arm a is unbiased for the arm's empirical mean, and the expected regret of an algorithm is that of the bandit with
these means, at any horizon. It is chosen for regret because 2901 people are too few for a long run, and rejection replay
(Li et al. 2011) would keep about one in five of them. One round is one simulated participant: it is a benchmark on public
data, and no claim that protects the 2901.

`people_table` lays the people themselves out, *without replacement*: column a holds the people of arm a in a random order,
so that each person stands in one cell, each round reads one person, and replacing one record is replacing one person. It
ends with the smallest arm. Audits run on it: what they protect is a person.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.drawn import DrawnContexts
from bandana.algorithms.environments.tables import ContextTable, RewardTable
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval
from bandana.privacy_core.checks import at_least

ARM_NAMES = ("no incentive", "up to $0.70", "up to $1.40", "up to $2.10", "more")
_EDGES = (0.0, 0.7, 1.4, 2.1)


@cache
def thornton_hiv() -> tuple[np.ndarray, ...]:
    """The outcomes (0 or 1) of each arm's people, in the order of the file.

    People without a voucher amount were not offered any, and people without an outcome cannot be rewarded: both are
    left out.

    Raises:
      RuntimeError: the data file is missing or is not what it was; the message says what to do.
    """
    try:
        from causaldata import thornton_hiv as dataset

        frame = dataset.load_pandas().data
    except (ImportError, OSError, ValueError) as error:
        raise RuntimeError(
            f"the data set thornton_hiv of the package causaldata cannot be read ({error}); "
            "reinstall it with: pip install --force-reinstall causaldata"
        ) from error
    missing = {"got", "tinc"} - set(frame.columns)
    if missing:
        raise RuntimeError(f"the data set thornton_hiv lacks the columns {sorted(missing)}; reinstall causaldata")
    frame = frame.dropna(subset=["got", "tinc"])
    outcomes = frame["got"].to_numpy(dtype=float)
    if not len(frame) or not np.isin(outcomes, (0.0, 1.0)).all():
        raise RuntimeError("the column got of thornton_hiv must hold 0 and 1 only; reinstall causaldata")
    arm = np.searchsorted(_EDGES, frame["tinc"].to_numpy(dtype=float), side="left")
    return tuple(outcomes[arm == a] for a in range(len(ARM_NAMES)))


def resampled_arms(n_users: int, seed: np.random.SeedSequence) -> BernoulliArms:
    """Each pull draws one of the arm's people with replacement; see the module's text."""
    return BernoulliArms([float(group.mean()) for group in thornton_hiv()], n_users, seed, ARM_NAMES)


def people_table(seed: np.random.SeedSequence, n_users: int | None = None) -> RewardTable:
    """(n_users, 5), one person a cell; at most as many rows as the smallest arm has people.

    Raises:
      ValueError: more rows are asked for than the smallest arm has people.
    """
    groups = thornton_hiv()
    available = min(len(group) for group in groups)
    if n_users is not None and not 1 <= n_users <= available:
        raise ValueError(
            f"thornton_hiv has {available} people in its smallest arm; n_users must be 1 to {available}, got {n_users}"
        )
    generator = np.random.Generator(np.random.SFC64(seed))
    columns = [generator.permutation(group)[: n_users or available] for group in groups]
    return RewardTable(np.stack(columns, axis=1), Interval(0.0, 1.0), ARM_NAMES)


class DrawnPeople(DrawnContexts):
    """People of a table who are drawn anew in each replicate, so that an interval speaks of other people too.

    Every cell plays on the same people, replicate by replicate: who is drawn hangs on no answer and on no action.

    Args:
      table: all people that may be drawn.
      people: (n_reps, n_users) row of the table that each user is, in each replicate.
    """

    def __init__(self, table: ContextTable, people: IntArray) -> None:
        self._table, self.people, self.n_users = table, people, people.shape[1]
        self.n_actions, self.names, self.reward_range = table.n_actions, table.names, table.reward_range
        self.context_dimension = table.context_dimension

    def _rows(self, user: IntArray) -> IntArray:
        return np.asarray(self.people[np.arange(len(user)), user])

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) features of the given users' actions, read-only."""
        self._offered = self._table.features[self._rows(user)]
        self._offered.setflags(write=False)
        return self._offered

    def mean_rewards(self, user: IntArray, contexts: FloatArray) -> FloatArray:
        """(n_reps, n_actions) what the users would answer: regret is counted against the best of it, in hindsight."""
        return np.asarray(self._table.rewards[self._rows(user)])

    def _answers(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        return np.asarray(self._table.rewards[self._rows(user), actions])

    def gaps(self, n_reps: int) -> FloatArray:
        """(n_reps, n_actions) mean regret of one user under each action, over the people of each replicate."""
        rewards = self._table.rewards[self.people[:n_reps]]
        return np.asarray((rewards.max(axis=2, keepdims=True) - rewards).mean(axis=1))


def drawn_people(table: ContextTable, n_reps: int, n_users: int, seed: np.random.SeedSequence) -> DrawnPeople:
    """People drawn with replacement from all of a table, for up to `n_reps` replicates.

    Of fewer replicates of the same seed, each meets the people that it would meet among more.
    """
    generator = np.random.Generator(np.random.SFC64(seed))
    return DrawnPeople(table, generator.integers(0, table.n_users, (n_reps, n_users)))


DIGIT_NAMES = tuple(f"digit {a}" for a in range(10))
N_IMAGES = 1797
"""Number of images of digits."""
N_PATIENTS = 442
"""Number of patients in the diabetes data."""
RANDHIE_ARMS = ("free", "25 %", "50 %", "95 %", "100 %")
_RANDHIE_CODES = (0.0, 3.258096, 3.931826, 4.564348, 4.615120)
_RANDHIE_COVARIATES = ("lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp", "idp")


@cache
def randhie() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The RAND health insurance experiment: covariates (20190, 8) in [0, 1], the arm of each row, whether a doctor was seen.

    A row is one person in one year. People were randomized to plans that let them pay a share of their bills; the arms are
    the five values of `lncoins`, the log of 1 + that share in percent (100 stands for the plan with a deductible). The
    reward, 1 if there was a visit to a doctor (`mdvis` above 0), is a medical fact that must stay private. Covariates are
    scaled by their smallest and largest values. Public domain; from the package statsmodels (Manning et al. 1987; Cameron
    and Trivedi 2005).

    Raises:
      RuntimeError: the data cannot be read or are not what they were.
    """
    try:
        from statsmodels.datasets import randhie as dataset

        frame = dataset.load_pandas().data
    except (ImportError, OSError, ValueError) as error:
        raise RuntimeError(
            f"the data set randhie of the package statsmodels cannot be read ({error}); "
            "reinstall it with: pip install --force-reinstall statsmodels"
        ) from error
    missing = {"mdvis", "lncoins", *_RANDHIE_COVARIATES} - set(frame.columns)
    if missing:
        raise RuntimeError(f"the data set randhie lacks the columns {sorted(missing)}; reinstall statsmodels")
    codes = frame["lncoins"].to_numpy(dtype=float)
    distance = np.abs(codes[:, None] - np.array(_RANDHIE_CODES))
    if not len(frame) or distance.min(axis=1).max() > 1e-3:
        raise RuntimeError("the column lncoins of randhie must hold the five rates; reinstall statsmodels")
    covariates = frame[list(_RANDHIE_COVARIATES)].to_numpy(dtype=float)
    low, high = covariates.min(axis=0), covariates.max(axis=0)
    return (
        (covariates - low) / (high - low),
        distance.argmin(axis=1),
        (frame["mdvis"].to_numpy(dtype=float) > 0).astype(float),
    )


def randhie_table(seed: np.random.SeedSequence, n_users: int = 4096) -> ContextTable:
    r"""People of the RAND experiment as a contextual bandit: five plans, 21 features, reward 1 if a doctor was seen.

    A person was observed under one plan; what the person would have done under another is taken from the most similar row
    of that plan, by distance of the scaled covariates (nearest-neighbor matching, Abadie and Imbens 2006). So every reward
    is one that a person gave. The data are a benchmark, and a record is a row of this table: a person may have lent an
    outcome to several rows, so that no claim here protects the people of the experiment.

    Features of plan a for covariates z in [0, 1]^8: (e_a, z/sqrt 8, r_a z/sqrt 8)/sqrt 3 with r_a the rate that is paid: an
    effect of each plan, of each covariate, and of the price on those who have it; norm at most 1.

    Args:
      seed: of the choice and order of the rows.
      n_users: rows, at most 20190.

    Raises:
      ValueError: more rows than there are.
    """
    covariates, answers = randhie()[0], _randhie_answers()
    if not 1 <= n_users <= len(answers):
        raise ValueError(f"randhie has {len(answers)} rows; n_users must be 1 to {len(answers)}, got {n_users}")
    rows = np.random.Generator(np.random.SFC64(seed)).permutation(len(answers))[:n_users]
    z, n_arms = covariates[rows] / np.sqrt(covariates.shape[1]), len(RANDHIE_ARMS)
    features = np.zeros((n_users, n_arms, n_arms + 2 * z.shape[1]))
    for a in range(n_arms):
        features[:, a, a] = 1.0
        features[:, a, n_arms : n_arms + z.shape[1]] = z
        features[:, a, n_arms + z.shape[1] :] = z * np.expm1(_RANDHIE_CODES[a]) / 100
    return ContextTable(features / np.sqrt(3), answers[rows], Interval(0.0, 1.0), RANDHIE_ARMS)


@cache
def _randhie_answers() -> FloatArray:
    """(n, n_arms) what each person gave under the own plan, and the most similar person of each other plan."""
    from scipy.spatial import cKDTree

    covariates, arm, rewards = randhie()
    answers = np.repeat(rewards[:, None], len(RANDHIE_ARMS), axis=1)
    for a in range(len(RANDHIE_ARMS)):
        members, others = np.flatnonzero(arm == a), np.flatnonzero(arm != a)
        answers[others, a] = rewards[members[cKDTree(covariates[members]).query(covariates[others])[1]]]
    return answers


def diabetes_table(seed: np.random.SeedSequence, n_users: int, n_actions: int = 10) -> ContextTable:
    r"""Diabetes patients as a kernel bandit: in each round some are shown, and the one who gets worst is looked for.

    A patient is a point: age, sex, body mass index, blood pressure and six serum measurements, centered and of one scale,
    over the largest norm of all patients; so points lie in the unit ball of R^10. The reward is the measure of disease
    progression one year later, from 0 (the least of all) to 1, and a medical fact. Each round shows `n_actions` patients who
    are drawn without replacement; from round to round they come again: a record is a round of this table, and no claim here
    protects the 442 people of the study. The data are those of the package scikit-learn (Efron, Hastie, Johnstone and
    Tibshirani 2004).

    Args:
      seed: of who is shown.
      n_users: rounds.
      n_actions: patients in a round, 2 to 442.

    Raises:
      ValueError: more patients than there are.
      RuntimeError: the data cannot be read.
    """
    try:
        from sklearn.datasets import load_diabetes

        patients, progression = load_diabetes(return_X_y=True)
    except (ImportError, OSError, ValueError) as error:
        raise RuntimeError(f"the diabetes data of scikit-learn cannot be read ({error}); reinstall scikit-learn") from error
    at_least("n_users", n_users, 1)
    if not 2 <= n_actions <= N_PATIENTS:
        raise ValueError(f"there are {N_PATIENTS} patients; n_actions must be 2 to {N_PATIENTS}, got {n_actions!r}")
    points = patients / np.linalg.norm(patients, axis=1).max()
    rewards = (progression - progression.min()) / (progression.max() - progression.min())
    generator = np.random.Generator(np.random.SFC64(seed))
    shown = np.stack([generator.choice(N_PATIENTS, n_actions, replace=False) for _ in range(n_users)])
    names = tuple(f"patient {a}" for a in range(n_actions))
    return ContextTable(points[shown], rewards[shown], Interval(0.0, 1.0), names)


def digits_table(seed: np.random.SeedSequence, n_users: int | None = None, n_projected: int = 6) -> ContextTable:
    r"""Handwritten digits as a contextual bandit: ten actions, reward 1 if the action names the digit.

    An image of 8 x 8 pixels, centered, is projected to `n_projected` dimensions by a public random matrix and scaled to norm
    1, which is z; action a has the features e_a (x) z, a parameter of its own for each digit: d = 10 n_projected.
    The images are those of the package scikit-learn (UCI, Alpaydin and Kaynak 1998).

    Args:
      seed: of the projection and of the order of the images.
      n_users: images, at most 1797; None: all.
      n_projected: 1 to 64.

    Raises:
      ValueError: more images than there are.
      RuntimeError: the data cannot be read.
    """
    try:
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
    except (ImportError, OSError, ValueError) as error:
        raise RuntimeError(f"the digits of scikit-learn cannot be read ({error}); reinstall scikit-learn") from error
    count = len(labels) if n_users is None else n_users
    if not 1 <= count <= len(labels):
        raise ValueError(f"there are {len(labels)} digits; n_users must be 1 to {len(labels)}, got {n_users}")
    if not 1 <= n_projected <= images.shape[1]:
        raise ValueError(f"n_projected must be 1 to {images.shape[1]}, got {n_projected!r}")
    generator = np.random.Generator(np.random.SFC64(seed))
    projection = generator.standard_normal((images.shape[1], n_projected))
    rows = generator.permutation(len(labels))[:count]
    z = (images - images.mean(axis=0))[rows] @ projection
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    n_actions = len(DIGIT_NAMES)
    features = np.zeros((count, n_actions, n_actions, n_projected))
    features[:, np.arange(n_actions), np.arange(n_actions)] = z[:, None, :]
    rewards = (labels[rows][:, None] == np.arange(n_actions)).astype(float)
    return ContextTable(features.reshape(count, n_actions, -1), rewards, Interval(0.0, 1.0), DIGIT_NAMES)
