"""The planted faults of every private algorithm of the catalog."""

from bandana.audits.faults.batches import BATCH_CONTROLS
from bandana.audits.faults.best_arm import BEST_ARM_CONTROLS
from bandana.audits.faults.capri import CAPRI_CONTROLS
from bandana.audits.faults.contextual import CONTEXTUAL_CONTROLS, LIN_PRIV_CONTROLS
from bandana.audits.faults.fault import Control
from bandana.audits.faults.finite_arm import FINITE_ARM_CONTROLS
from bandana.audits.faults.kernel import KERNEL_CONTROLS
from bandana.audits.faults.linear import LINEAR_CONTROLS
from bandana.audits.faults.linear_mdp import LINEAR_MDP_CONTROLS
from bandana.audits.faults.logistic import LOGISTIC_CONTROLS
from bandana.audits.faults.mixture import MIXTURE_CONTROLS
from bandana.audits.faults.policies import POLICY_CONTROLS
from bandana.audits.faults.randomized import RANDOMIZED_CONTROLS
from bandana.audits.faults.tabular import TABULAR_CONTROLS

CONTROLS: dict[str, tuple[Control, ...]] = {
    **FINITE_ARM_CONTROLS, **BATCH_CONTROLS, **RANDOMIZED_CONTROLS, **BEST_ARM_CONTROLS, **LINEAR_CONTROLS,
    **CONTEXTUAL_CONTROLS, **LOGISTIC_CONTROLS, **POLICY_CONTROLS, **LIN_PRIV_CONTROLS, **KERNEL_CONTROLS, **CAPRI_CONTROLS,
    **MIXTURE_CONTROLS, **LINEAR_MDP_CONTROLS, **TABULAR_CONTROLS,
}  # fmt: skip
"""Label of a private entry of the catalog -> its planted faults."""
