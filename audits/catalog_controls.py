"""The planted faults of every private algorithm of the catalog."""

from bandana.audits.baseline_controls import BASELINE_CONTROLS
from bandana.audits.contextual_controls import CONTEXTUAL_CONTROLS
from bandana.audits.controls import EPISODIC_UCB, Control
from bandana.audits.gope_controls import GOPE_CONTROLS
from bandana.audits.kernel_controls import KERNEL_CONTROLS
from bandana.audits.linear_mdp_controls import LINEAR_MDP_CONTROLS
from bandana.audits.mixture_controls import MIXTURE_CONTROLS
from bandana.audits.pooled_kernel_controls import POOLED_KERNEL_CONTROLS
from bandana.audits.projected_kernel_controls import PROJECTED_KERNEL_CONTROLS

CONTROLS: dict[str, tuple[Control, ...]] = {
    "adar-ucb": EPISODIC_UCB, **BASELINE_CONTROLS, **GOPE_CONTROLS, **CONTEXTUAL_CONTROLS, **KERNEL_CONTROLS,
    **POOLED_KERNEL_CONTROLS, **PROJECTED_KERNEL_CONTROLS, **MIXTURE_CONTROLS, **LINEAR_MDP_CONTROLS,
}  # fmt: skip
"""Name of the algorithm -> its planted faults."""
