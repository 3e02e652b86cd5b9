"""The planted faults of every private algorithm of the catalog."""

from bandana.audits.faults.baselines import BASELINE_CONTROLS
from bandana.audits.faults.capri import PROJECTED_KERNEL_CONTROLS
from bandana.audits.faults.contextual import CONTEXTUAL_CONTROLS
from bandana.audits.faults.fault import Control
from bandana.audits.faults.finite_arm import EPISODIC_UCB
from bandana.audits.faults.kernel import KERNEL_CONTROLS
from bandana.audits.faults.linear import GOPE_CONTROLS
from bandana.audits.faults.linear_mdp import LINEAR_MDP_CONTROLS
from bandana.audits.faults.mixture import MIXTURE_CONTROLS
from bandana.audits.faults.pooled_kernel import POOLED_KERNEL_CONTROLS

_BY_NAME: dict[str, tuple[Control, ...]] = {
    "adar-ucb": EPISODIC_UCB, **BASELINE_CONTROLS, **GOPE_CONTROLS, **CONTEXTUAL_CONTROLS, **KERNEL_CONTROLS,
    **POOLED_KERNEL_CONTROLS, **PROJECTED_KERNEL_CONTROLS, **MIXTURE_CONTROLS, **LINEAR_MDP_CONTROLS,
}  # fmt: skip


def _label(name: str) -> str:
    words = name.replace("-joint", " joint").replace("-local", " local")
    return f"{words.replace('-pure', '')} pure" if "-pure" in words else words


CONTROLS = {_label(name): faults for name, faults in _BY_NAME.items()}
"""Label of a private entry of the catalog -> its planted faults."""
