"""Which tests CI repeats as another processor: `make test-numeric`, pytest's marker `numeric`.

A test file is sensitive if it, or a module of the product that it imports, multiplies matrices, solves systems, transforms
or optimizes: last bits then depend on the processor, and a choice that hangs on them makes a test red elsewhere. All tests
of a sensitive file are repeated, unless `MARKED` names those that suffice, or `EXCEPTIONS` gives a reason to repeat none.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("privacy_core", "algorithms", "audits", "flows")
_NAMES = {"linalg", "fft", "einsum"}
_MODULES = ("numpy.linalg", "numpy.fft", "scipy.linalg", "scipy.optimize", "scipy.fft", "sklearn")

MARKER = "numeric"
ALL = ("",)
"""Every test of a file."""

MARKED: dict[str, tuple[str, ...]] = {
    "algorithms/bandits/capri/test_capri_batches.py": ALL,
    "algorithms/bandits/contextual/test_contextual_privacy.py": ALL,
    "algorithms/rl/linear_mdp/test_lsvi_entries.py": (
        "test_values_are_optimistic",
        "test_the_bound_holds_and",
        "test_the_bound_by_hand",
    ),
    "algorithms/test_regret_bounds.py": (
        "test_the_bound_of_oful",
        "test_the_bound_of_gp_ucb",
        "test_theorem_5_by_hand",
    ),
    "algorithms/environments/test_sphere_contexts.py": (
        "test_rewards_follow",
        "test_no_law_of",
        "test_what_the_check_says",
    ),
    "algorithms/test_ties.py": ALL,
    "algorithms/rl/mixture/test_ucrl_vtr.py": (
        "test_the_twin_against",
        "test_one_episode_by_hand",
        "test_the_model_is_that",
        "test_without_noise",
        "test_where_the_noise_beats",
        "test_a_replicate_of_a_batch",
    ),
    "audits/replays/test_attacks.py": (
        "test_each_attack_finds",
        "test_the_one_that_promises_most",
        "test_an_arm_in_the_middle",
    ),
    "audits/faults/test_finite_arm_faults.py": ("test_the_audit_of_the_noise_catches_it",),
    "flows/annexes/anything/functions/test_black_box.py": (
        "test_the_leaky_example_fails",
        "test_the_private_example_passes",
    ),
    "audits/bounds/test_coin_flips.py": (
        "test_single_precision_and_rounded",
        "test_a_lone_infinity",
    ),
    "audits/families/test_contextual_audits.py": ("test_the_worst_pair_reaches_the_claim",),
    "audits/bounds/test_divergence_bounds.py": (
        "test_last_bits",
        "test_no_plan_claims_more",
        "test_sharpness_on_a_gaussian",
    ),
    "audits/test_engine.py": ("test_evidence_of_a_local_audit",),
    "audits/families/test_episode_audits.py": ("test_the_likelihood_ratio",),
    "audits/bounds/test_evalues.py": ("test_no_pair_has_means_above_two_at_its_own_gdp",),
    "audits/test_evidence.py": ("test_what_is_read_is",),
    "audits/families/test_kernel_audits.py": (
        "test_the_worst_pair_nearly",
        "test_opposite_rewards",
    ),
    "audits/families/test_linear_mdp_audits.py": (
        "test_the_worst_pair_nearly",
        "test_determinants_of_exact",
    ),
    "audits/bounds/test_methods.py": ("test_every_method_sees",),
    "audits/families/test_mixture_audits.py": ("test_a_replaced_episode_reaches",),
    "audits/searches/test_noise_reuse.py": (
        "test_it_names_the_releases",
        "test_other_laws",
        "test_a_deviation_15_percent",
    ),
    "audits/bounds/test_one_run_bounds.py": ("test_sequential_bounds_are_hardly",),
    "audits/replays/test_one_run_audit.py": ("test_at_a_delta_of_one_percent",),
    "audits/bounds/test_power.py": (
        "test_a_pair_that_shows_half",
        "test_more_replays_catch_less",
    ),
    "audits/families/test_capri_audits.py": (
        "test_the_worst_pair_reaches",
        "test_each_fault_costs",
        "test_the_honest_one_costs",
    ),
    "audits/replays/test_replay.py": ("test_the_score_of_an_honest_run",),
    "audits/own/test_rescaled.py": ("test_the_likelihood_ratio",),
    "flows/annexes/crosscheck/test_second_opinions.py": (
        "test_a_known_defect_is_measured",
        "test_all_seven_accountants",
    ),
    "audits/searches/test_deterministic.py": ("test_each_fault_is_found_for_its_own",),
    "audits/faults/test_sum_faults.py": ("test_a_utility_fault",),
    "audits/testbeds/test_blocks.py": ("test_an_honest_bed_spends",),
    "audits/test_verdicts.py": ("test_the_same_effort",),
    "audits/neighbors/test_worst_pair.py": (
        "test_positions_are_refined",
        "test_planted_faults",
        "test_adar_ucb_reaches",
    ),
    "flows/results/test_power_curve.py": ALL,
    "privacy_core/test_factorized_sum.py": (
        "TestTheExplicitMatrices",
        "TestReferenceVariances::test_four",
        "TestReferenceVariances::test_the_reference_buffers",
        "test_one_price",
    ),
    "privacy_core/test_sums_contract.py": ("test_a_replicate_of_a_batch",),
    "test_catalog_contract.py": ("test_replays_of_the_honest_one_stay_below_its_claim[capri-joint-printed",),
    "test_numeric.py": ("test_the_marker",),
}
"""File -> beginnings of the names of its tests (`Class::test` in a class), where not all are repeated, or all of a file that
is not sensitive itself."""

EXCEPTIONS: dict[str, str] = {
    "algorithms/bandits/capri/test_capri_processors.py": "it starts the other processor itself",
    "flows/problems/test_environments.py": "norms of what is drawn; its numbers are repeated in algorithms/",
    "flows/problems/test_episode_environments.py": "one product of two unit vectors; models have tests of their own",
    "flows/keys/test_identity.py": "keys are made of text; those of every spec are compared in test_processors",
    "flows/problems/test_kernel_environments.py": "distances with wide room; functions have tests of their own",
    "privacy_core/test_secure_noise.py": "the noise is made of whole numbers, norms are compared with what those allow",
    "test_processors.py": "it starts the other processor itself",
}
"""File -> why none of its tests is repeated."""

HARMLESS = {
    "bandana.algorithms.environments.tables": "norms of rows, to refuse those above 1; unit vectors from sines and cosines",
}
"""Modules of the product whose algebra decides nothing, with the reason."""


@lru_cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


_HINT = re.compile(r" @ | @=|linalg|fft|einsum|optimize|sklearn")


def computes(path: Path) -> bool:
    """Whether the file multiplies matrices, solves systems, transforms or optimizes."""
    if not _HINT.search(path.read_text(encoding="utf-8")):  # most files; reading them is faster than parsing them
        return False
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            return True
        if isinstance(node, ast.Attribute) and node.attr in _NAMES:
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_MODULES):
            return True
    return False


@lru_cache
def computing_modules() -> frozenset[str]:
    """Names of the product's modules that compute so, the harmless ones left out."""
    found = set()
    for path in (path for package in PRODUCT for path in (ROOT / package).rglob("*.py")):
        name = ".".join(("bandana", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        if name not in HARMLESS and computes(path):
            found.add(name)
    return frozenset(found)


def imports(path: Path) -> set[str]:
    """Names of all modules that a file imports, and of all that it takes from them."""
    found = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


@lru_cache
def is_sensitive(path: Path) -> bool:
    """Whether a test file computes so, or takes anything from a module that does."""
    return computes(path) or bool(imports(path) & computing_modules())


def is_marked(node_id: str) -> bool:
    """Whether a test is repeated, by pytest's name of it."""
    path, _, name = node_id.partition("::")
    file = path.removeprefix("tests/")
    if file in MARKED:
        return name.startswith(MARKED[file])
    return file not in EXCEPTIONS and (ROOT / path).is_file() and is_sensitive(ROOT / path)
