"""Whether an algorithm and a naive copy of it, as short as its pseudo-code, do equally well on one table."""

import math

import numpy as np


def assert_as_good(means, ours, naive, *, most_spread, deviations):
    """Mean rewards of both differ by less than 5 standard errors: false alarm 6e-7. And both sides could fail.

    Args:
      means: (n_users, n_actions) mean rewards.
      ours: (n_reps, n_users) actions of the algorithm.
      naive: (n_reps, n_users) actions of the copy.
      most_spread: the standard error of the difference is below it, so that the test can tell.
      deviations: so many standard errors is the algorithm better than uniform play: it learns.
    """
    gained = [
        np.take_along_axis(means[None], np.array(actions)[:, :, None], axis=2).mean(axis=(1, 2)) for actions in (ours, naive)
    ]
    spread = math.sqrt(sum(found.var() / len(found) for found in gained))
    assert abs(gained[0].mean() - gained[1].mean()) < 5 * spread
    assert spread < most_spread, "the test can tell"
    assert gained[0].mean() > means.mean() + deviations * spread, "it learns"
