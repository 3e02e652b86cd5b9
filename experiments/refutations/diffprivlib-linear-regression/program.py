"""The fitted coefficients of diffprivlib's linear regression on records (x, y)."""

import numpy as np
from diffprivlib.models import LinearRegression


def coefficient(data, seed, epsilon, lower):
    """The coefficient of one feature, of which is said that it lies in [lower, 1]."""
    features, targets = np.array(data, dtype=float).T
    model = LinearRegression(epsilon=epsilon, bounds_X=(lower, 1), bounds_y=(0, 1), fit_intercept=False, random_state=seed)
    return model.fit(features[:, None], targets).coef_
