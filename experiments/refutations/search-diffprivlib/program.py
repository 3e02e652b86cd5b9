"""Mechanisms, tools and models of diffprivlib, each on data on which much depends on one record."""

import numpy as np
from diffprivlib import mechanisms, models, tools

UTILITY_PAIRS = [["a", "b", 1], ["a", "c", 2], ["b", "c", 1]]


def mechanism(data, seed, name, **parameters):
    """A mechanism on one value, or without one where the data are its utilities."""
    if name in ("Exponential", "PermuteAndFlip"):
        return mechanisms_of(name)(utility=data, random_state=seed, **parameters).randomise()
    if name == "ExponentialCategorical":
        parameters["utility_list"] = UTILITY_PAIRS
    value = np.array(data, dtype=float) if name == "Bingham" else data[0]
    output = mechanisms_of(name)(random_state=seed, **parameters).randomise(value)
    return np.outer(output, output).ravel() if name == "Bingham" else output  # its sign means nothing


def mechanisms_of(name):
    """The class of that name."""
    return getattr(mechanisms, name)


def tool(data, seed, name, **parameters):
    """A tool on numbers."""
    if name in ("histogram", "histogramdd", "histogram2d"):
        records = np.array(data, dtype=float)
        given = {"histogram": [records], "histogramdd": [records[:, None]], "histogram2d": [records, records]}[name]
        spans = (0, 1) if name == "histogram" else [(0, 1)] * (1 if name == "histogramdd" else 2)
        return getattr(tools, name)(*given, bins=2, range=spans, random_state=seed, **parameters)[0].ravel()
    bounds = {} if name == "count_nonzero" else {"bounds": (0, 1)}
    return getattr(tools, name)(np.array(data, dtype=float), random_state=seed, **bounds, **parameters)


def model(data, seed, name, **parameters):
    """What a fitted model keeps, or predicts at two points; records are features, or features and a label."""
    records = np.array(data, dtype=float)
    if name == "StandardScaler":
        fitted = models.StandardScaler(bounds=(0, 1), random_state=seed, **parameters).fit(records)
        return np.concatenate([fitted.mean_, fitted.var_])
    if name == "PCA":
        given = {"n_components": 1, "centered": True, "data_norm": 1.0}
        fitted = models.PCA(random_state=seed, **given, **parameters).fit(records)
        return np.concatenate([np.outer(*[fitted.components_[0]] * 2).ravel(), fitted.explained_variance_])
    given = {"bounds": (0, 1), "classes": [0, 1], "max_depth": 1, "random_state": seed}
    if name == "RandomForestClassifier":
        given |= {"n_estimators": 1}
    fitted = getattr(models, name)(**given, **parameters).fit(records[:, :-1], records[:, -1].astype(int))
    return fitted.predict(np.array([[0.05], [0.95]]))


def state(release, name, epsilon=0.0, delta=0.0, **others):
    """Of a mechanism, epsilon and delta for its sensitivity; of others, which name no neighbors, twice them."""
    factor = 1 if release == "mechanism" else 2
    return f"approx(epsilon={factor * epsilon}, delta={delta})" if delta else f"pure(epsilon={factor * epsilon})"
