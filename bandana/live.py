"""A private bandit between real users: `ask` for an action, `tell` the reward later, from any process.

```python
import bandana.live

policy = bandana.live.open("router.db", algorithm="dp-imed", claim="pure(epsilon=1, relation=reward)", n_actions=4)
choice = policy.ask()
policy.tell(choice.id, reward=1.0)
print(policy.privacy())
```
"""

from bandana.flows.annexes.live.api import (
    Choice,
    ChoiceError,
    Policy,
    Privacy,
    StoreError,
    World,
    new_key,
    open,
    restore,
)
from bandana.flows.annexes.live.estimates import ArmMean, Effect, arm_means, effect

__all__ = [
    "ArmMean", "Choice", "ChoiceError", "Effect", "Policy", "Privacy", "StoreError", "World", "arm_means", "effect",
    "new_key", "open", "restore",
]  # fmt: skip
