"""Prices for primitives of other libraries: what a program's privacy rests on, declared where it is called.

```python
from bandana.primitives import Price, priced

@priced(Price("pure(epsilon=1)", sensitivity=1, norm="L1"))
def noisy(value):
    return library.laplace(value, scale=1.0)
```

`bandana audit-release` then runs the program on both data sets with the outputs of all priced primitives held fixed, and
composes their prices. Outside an audit a priced primitive is the primitive itself.
"""

from bandana.flows.annexes.anything.foreign.opacus import price_steps
from bandana.flows.annexes.anything.foreign.prices import Price
from bandana.flows.annexes.anything.foreign.tape import priced, release

__all__ = ["Price", "price_steps", "priced", "release"]
