"""The code that `adap_tt.py` adapts, with its own generator and loop: the rounds that it returns, and those that it took."""

import numpy as np
from adap_tt import AUTHORS

MODULE = AUTHORS.unchanged()


class Arms:
    """Bernoulli arms that count their pulls."""

    def __init__(self, means):
        self.means, self.n_pulls = means, 0

    def pull(self, arm):
        """0 or 1."""
        self.n_pulls += 1
        return MODULE.np.random.binomial(1, self.means[arm])


def ended(means, epsilon, n, seed):
    """(n, 3) the stopping time that their code returns, the pulls that it made, and the arm that it recommends."""
    MODULE.np.random.seed(seed)
    rows = []
    for _ in range(n):
        test, arms = MODULE.AdaPTopTwo({"K": len(means), "eps": epsilon, "delta": 0.05, "beta": 0.5}), Arms(means)
        test.save_logs = lambda: None  # it writes a file for each test
        rounds, best = test.run(arms)
        rows.append((rounds, arms.n_pulls, best))
    return np.array(rows)


if __name__ == "__main__":
    rounds, pulls, best = ended([0.6, 0.4, 0.4, 0.3, 0.3], 0.8069, 100, 1).T
    for what, numbers in (("returned", rounds), ("pulled", pulls)):
        print(f"{what}: {numbers.mean():,.0f} +- {1.96 * numbers.std(ddof=1) / 10:,.0f}")
    print(f"wrong: {(best != 0).mean():.0%}")
