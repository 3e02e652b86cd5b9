"""Opacus: the noise of an optimizer's step as one priced primitive."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import MethodType
from typing import Any

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.flows.annexes.anything.foreign.tape import release
from bandana.privacy_core import Gaussian, GaussianEvent


@dataclass(frozen=True)
class SampledStep:
    """The noise of a step on a sampled batch: what sampling gains is not accounted, so the price is an upper bound.

    Attributes:
      noise: of the step.
      sample_rate: of each record, as Opacus' accountant is told it.
    """

    noise: Gaussian
    sample_rate: float

    is_exact = False

    @property
    def event(self) -> GaussianEvent:
        """The cost without sampling."""
        return self.noise.event

    @property
    def sensitivity(self) -> float:
        """The clipping norm."""
        return self.noise.sensitivity

    @property
    def norm(self) -> str:
        """L2."""
        return self.noise.norm

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_reps,), L2 distance."""
        return self.noise.change(value, neighbor)


def price_steps(optimizer: Any) -> Any:
    """Prices each step of a `DPOptimizer`: Gaussian noise on the sum of clipped gradients of all parameters.

    Where batches are sampled, as the optimizer's accountant knows, the price is an upper bound: what sampling gains is
    measured by replays, and not accounted.

    Args:
      optimizer: a `DPOptimizer`, as `PrivacyEngine.make_private` returns it; one clipping norm for all parameters.

    Returns:
      the same optimizer.
    """
    add_noise = optimizer.add_noise

    def priced(self: Any) -> None:
        def draw() -> FloatArray:
            add_noise()
            return _flat([p.grad for p in self.params])

        noise, rate = Gaussian(float(self.max_grad_norm), float(self.noise_multiplier)), _sample_rate(self)
        price = noise if rate == 1 else SampledStep(noise, rate)
        noisy, begin = release("DPOptimizer.add_noise", price, _flat([p.summed_grad for p in self.params]), draw), 0
        for p in self.params:
            part = noisy[begin : begin + p.grad.numel()].reshape(tuple(p.grad.shape))
            p.grad.copy_(p.grad.new_tensor(part))
            begin += p.grad.numel()

    optimizer.add_noise = MethodType(priced, optimizer)
    return optimizer


def _sample_rate(optimizer: Any) -> float:
    """The rate that the accountant's hook was made with; 1 where there is none."""
    hook = getattr(optimizer, "step_hook", None)
    known = inspect.getclosurevars(hook).nonlocals if inspect.isfunction(hook) else {}
    return float(known.get("sample_rate", 1.0))


def _flat(tensors: list[Any]) -> FloatArray:
    """(n,) float64: all numbers of some tensors; a float32 survives the way back unchanged."""
    return np.concatenate([np.asarray(tensor.detach().cpu(), dtype=float).ravel() for tensor in tensors])
