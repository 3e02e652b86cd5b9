"""Measurements of OpenDP 0.16 at a scale, each with what its map states for the distance of the audited pair."""

from functools import cache

import opendp.prelude as dp

dp.enable_features("contrib", "honest-but-curious")

COUNT = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
SCORES = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
SIZED = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=4), dp.symmetric_distance()
NAMES = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
INTEGERS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
TABLE = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
L1_TABLE, L2_TABLE = (
    (TABLE, distance(dp.absolute_distance(T=int))) for distance in (dp.l01inf_distance, dp.l02inf_distance)
)
INTEGER = dp.atom_domain(T=int), dp.absolute_distance(T=int)
FLOAT = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

# name -> (measurement of a scale, distance of the pair)
MEASUREMENTS = {
    "make_laplace, integers": (lambda scale: dp.m.make_laplace(*INTEGER, scale), 1),
    "make_laplace, floats": (lambda scale: dp.m.make_laplace(*FLOAT, scale), 1.0),
    "make_laplace, vectors": (lambda scale: dp.m.make_laplace(*COUNT, scale), 2),
    "make_geometric, bounded": (lambda scale: dp.m.make_geometric(*INTEGER, scale, bounds=(0, 3)), 1),
    "make_gaussian, integers": (lambda scale: dp.m.make_gaussian(*INTEGER, scale), 1),
    "make_gaussian, floats": (lambda scale: dp.m.make_gaussian(*FLOAT, scale), 1.0),
    "make_noisy_max": (lambda scale: dp.m.make_noisy_max(*SCORES, dp.max_divergence(), scale), 1.0),
    "make_noisy_max, zCDP": (lambda scale: dp.m.make_noisy_max(*SCORES, dp.zero_concentrated_divergence(), scale), 1.0),
    "make_noisy_top_k": (lambda scale: dp.m.make_noisy_top_k(*SCORES, dp.max_divergence(), 2, scale), 1.0),
    "make_laplace_threshold": (lambda scale: dp.m.make_laplace_threshold(*L1_TABLE, scale, threshold=20), (1, 1, 1)),
    "make_gaussian_threshold": (lambda scale: dp.m.make_gaussian_threshold(*L2_TABLE, scale, threshold=20), (1, 1, 1)),
    "make_randomized_response": (lambda prob: dp.m.make_randomized_response(["a", "b", "c"], prob), 1),
    "make_randomized_response_bool": (lambda prob: dp.m.make_randomized_response_bool(prob), 1),
    "make_count": (lambda scale: dp.t.make_count(*INTEGERS) >> dp.m.then_laplace(scale), 1),
    "make_count_distinct": (lambda scale: dp.t.make_count_distinct(*INTEGERS) >> dp.m.then_laplace(scale), 1),
    "make_count_by_categories": (
        lambda scale: dp.t.make_count_by_categories(*NAMES, ["a", "b"]) >> dp.m.then_laplace(scale), 2),
    "make_clamp and make_sum": (
        lambda scale: dp.t.make_clamp(*INTEGERS, (0, 2)) >> dp.t.then_sum() >> dp.m.then_laplace(scale), 1),
    "make_resize and make_sum": (
        lambda scale: dp.t.make_clamp(*INTEGERS, (0, 2)) >> dp.t.then_resize(4, 0) >> dp.t.then_sum()
        >> dp.m.then_laplace(scale), 1),
    "make_mean": (lambda scale: dp.t.make_mean(*SIZED) >> dp.m.then_laplace(scale), 2),
    "make_variance": (lambda scale: dp.t.make_variance(*SIZED) >> dp.m.then_laplace(scale), 2),
    "make_quantile_score_candidates": (
        lambda scale: dp.t.make_quantile_score_candidates(*INTEGERS, [0, 1, 2, 3], 0.5)
        >> dp.m.then_noisy_max(dp.max_divergence(), scale), 1),
    "make_b_ary_tree under l1_distance": (
        lambda scale: dp.t.make_b_ary_tree(*COUNT, leaf_count=4, branching_factor=2) >> dp.m.then_laplace(scale), 1),
}  # fmt: skip


@cache
def measurement(name, scale):
    """The measurement of that name."""
    return MEASUREMENTS[name][0](scale)


def release(data, seed, name, scale):
    """Its output; OpenDP draws its own randomness."""
    output = measurement(name, scale)(data)
    return dict(sorted(output.items())) if isinstance(output, dict) else output


def state(_, name, scale):
    """What the map states for the distance of the pair; of an approximate zCDP claim its rho, whose delta is below 1e-15."""
    stated, found = measurement(name, scale).map(MEASUREMENTS[name][1]), measurement(name, scale).output_measure
    if isinstance(stated, tuple):
        kind = "approx" if "MaxDivergence" in str(found) else "zcdp"
        return f"approx(epsilon={stated[0]}, delta={stated[1]})" if kind == "approx" else f"zcdp(rho={stated[0]})"
    return f"zcdp(rho={stated})" if "ZeroConcentrated" in str(found) else f"pure(epsilon={stated})"
