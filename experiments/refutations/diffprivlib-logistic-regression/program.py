"""The coefficient of diffprivlib's logistic regression."""

import numpy as np
from diffprivlib.models import LogisticRegression


def coefficient(data, seed, epsilon, data_norm, inverse_strength):
    """One coefficient, of records (label, feature), without intercept."""
    labels, features = np.array(data, dtype=float).T
    model = LogisticRegression(
        epsilon=epsilon, data_norm=data_norm, C=inverse_strength, fit_intercept=False, random_state=seed
    )
    return model.fit(features[:, None], labels).coef_.ravel()


def state(release, epsilon, **others):
    """Twice epsilon, for a replaced record."""
    return f"pure(epsilon={2 * epsilon})"
