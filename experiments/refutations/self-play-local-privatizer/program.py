"""One user's report under the local privatizer of a paper on self-play, re-created from its description.

A user plays an episode of H steps and reports, for each step, which cell of the table they visited. `printed` has noise for
the H visits of one episode; `doubled` for the 2H by which two episodes can differ.
"""

import numpy as np

N_CELLS = 3


def printed(data, seed, epsilon, factor=1):
    """A noisy table (steps, cells)."""
    table = np.zeros((len(data), N_CELLS))
    table[np.arange(len(data)), data] = 1
    return (table + np.random.default_rng(seed).laplace(0, factor * len(data) / epsilon, table.shape)).ravel()


def doubled(data, seed, epsilon):
    """The same with twice the noise."""
    return printed(data, seed, epsilon, factor=2)
