"""What diffprivlib's naive Bayes classifier keeps of each class: its count, its means and its variances."""

import numpy as np
from diffprivlib.models import GaussianNB


def classes(data, seed, epsilon, bounds):
    """Counts and means of two classes, of records (label, feature)."""
    labels, features = np.array(data, dtype=float).T
    model = GaussianNB(epsilon=epsilon, bounds=tuple(bounds), random_state=seed).fit(features[:, None], labels)
    return np.concatenate([model.class_count_, model.theta_.ravel(), model.var_.ravel()])


def state(release, epsilon, bounds):
    """Twice epsilon, for a replaced record."""
    return f"pure(epsilon={2 * epsilon})"
