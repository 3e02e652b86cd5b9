"""The planted faults of every private algorithm of the catalog."""

from audits.baseline_controls import BASELINE_CONTROLS
from audits.contextual_controls import CONTEXTUAL_CONTROLS
from audits.controls import EPISODIC_UCB, Control
from audits.gope_controls import GOPE_CONTROLS
from audits.kernel_controls import KERNEL_CONTROLS
from audits.linear_mdp_controls import LINEAR_MDP_CONTROLS
from audits.projected_kernel_controls import PROJECTED_KERNEL_CONTROLS

CONTROLS: dict[str, tuple[Control, ...]] = {
    "adar-ucb": EPISODIC_UCB, **BASELINE_CONTROLS, **GOPE_CONTROLS, **CONTEXTUAL_CONTROLS, **KERNEL_CONTROLS,
    **PROJECTED_KERNEL_CONTROLS, **LINEAR_MDP_CONTROLS,
}  # fmt: skip
"""Name of the algorithm -> its planted faults."""
