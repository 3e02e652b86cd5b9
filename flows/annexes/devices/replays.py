r"""Replays of one side of a pair on a device of torch: the same replays as the ledger's, up to rounding.

Noise is drawn where it always is, by the same source from the same seeds in the same order, so that each replay is the one
that `bandana.audits.replays.replay` makes, and evidence can be verified on any machine. All else happens on the device. As
decisions read released values alone, both sides act alike given equal releases, but where a canary brings other contexts or
states: so one pass holds the released state of both, and what the canary contributes on each side. With s_r the deviation of
release r's noise s_r z_r, in whitened values, and d_r the difference that the canary makes to its exact value,

    log p(output | there) - log p(output | here) = sum_r (z_r . d_r) / s_r - |d_r|^2 / (2 s_r^2),

and sum_r (|s_r z_r|_1 - |s_r z_r - d_r|_1) / s_r of Laplace noise.

What a device plays is our second writing of an algorithm. It is believed after it was held against the algorithm's own
replays, on the same noise, for each pair and side (`_agrees`); where it disagrees, or knows no such algorithm, as with most
planted faults, the algorithm itself is replayed.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCB
from bandana.algorithms.bandits.kernel.gp_ucb import GPUCB
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.protocol import Algorithm, IntArray, Record
from bandana.algorithms.rl.tabular.ucb_vi import UCBVI
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.replays.later_actions import LaterActions
from bandana.audits.replays.replay import ARRAYS, BLOCK, Elsewhere, Fill, Replays, action_codes, replay_block
from bandana.flows.annexes.devices.episodes import OptimisticPlanning
from bandana.flows.annexes.devices.linear_maps import read_map
from bandana.flows.annexes.devices.regressions import OptimisticRegression
from bandana.privacy_core import FactorizedSum, Gaussian, JointGaussian, Laplace, LocalSum, ReproducibleNoise, TreeSum

Tensor = Any
TOLERANCE = 1e-6
"""Largest difference of two scores, relative to 1 plus their size: rounding."""
_MOST_BYTES = 1 << 32
"""Largest memory of a block's noise; where it needs more, the algorithm itself is replayed."""
_CHECKED, _TIPPED = 64, 1
"""Replays that are made twice, and how many of them rounding may tip at a tie."""


class Twin(Protocol):
    """Second writing of an algorithm, on a device: each method works on all replicates."""

    ends: Sequence[int]
    """Number of records before each closing of the sums."""
    shape: tuple[int, ...]
    """Shape of the statistic."""

    def begin(self, n_reps: int) -> None:
        """Forgets everything."""

    def play(self, user: int, on_neighbor: bool) -> tuple[Tensor, Tensor]:
        """Actions (n_reps, n_steps) of a user of one side, and (n_reps, n_free) whitened, what the record contributes."""

    def learn(self, answer: Tensor, step: int) -> None:
        """Takes in (n_reps, *shape), what the sums answer at the step-th closing."""


TWINS: dict[type, Any] = {LinUCB: OptimisticRegression, GPUCB: OptimisticRegression, UCBVI: OptimisticPlanning}
"""Algorithm -> its twin, of (algorithm, pair, device)."""
_SUMS, _NOISE = (FactorizedSum, LocalSum, TreeSum), (Gaussian, JointGaussian, Laplace)
"""Their sums and mechanisms. All must be of exactly these types: a subclass may leak where no sample of replays shows it."""


def player(device: str) -> Elsewhere:
    """Plays replays on a device, by the name that torch gives it, such as cuda or cpu.

    Raises:
      ValueError: torch is not installed, or there is no such device; the message says what to do.
    """
    try:
        import torch
    except ImportError as error:
        raise ValueError(f"{device!r} needs torch: install it, or leave the device out") from error
    try:
        torch.zeros(1, dtype=torch.float64, device=device).sum().item()
    except (RuntimeError, AssertionError, TypeError) as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"torch cannot use {device!r} ({why}): name another, or leave it out") from error

    def elsewhere(algorithm: Algorithm, pair: Pair, on_neighbor: bool) -> Fill | None:
        known, sums = TWINS.get(type(algorithm)), getattr(algorithm, "sums", None)
        if known is None or type(sums) not in _SUMS or type(getattr(sums, "mechanism", None)) not in _NOISE:
            return None
        if getattr(algorithm, "preference", None) is not None:
            return None
        twin = known(algorithm, pair, device)
        if not 0 < len(twin.ends) * math.prod(twin.shape) * BLOCK * 8 <= _MOST_BYTES:
            return None
        fill = _filler(twin, algorithm, pair, on_neighbor, device)
        return fill if _agrees(fill, algorithm, pair, on_neighbor) else None

    return elsewhere


def _agrees(fill: Fill, algorithm: Algorithm, pair: Pair, on_neighbor: bool) -> bool:
    """True if the device makes the replays that the algorithm makes, on noise that no audit uses."""
    seed, again = np.random.SeedSequence((1, _CHECKED)), np.random.SeedSequence((1, _CHECKED))
    own = replay_block(algorithm, pair, on_neighbor, _CHECKED, seed, 0)
    mine = replace(own, **{name: np.empty_like(getattr(own, name)) for name in ARRAYS})
    fill(mine, again.spawn(1)[0])
    differs = (own.actions != mine.actions).any(axis=1) | (own.action_code != mine.action_code)
    for name in ("log_ratio", "report_log_ratio"):
        ours, theirs = getattr(own, name), getattr(mine, name)
        with np.errstate(invalid="ignore"):  # infinite scores of a fault
            differs |= ~(np.abs(ours - theirs) <= TOLERANCE * (1 + np.abs(ours)))
    return bool(differs.sum() <= _TIPPED)


def _filler(twin: Twin, algorithm: Algorithm, pair: Pair, on_neighbor: bool, device: str) -> Fill:
    """A function that fills a block of replays of one side, from the block's seed."""
    import torch

    sums = read_map(algorithm.sums, twin.shape, twin.ends)  # type: ignore[attr-defined]
    on = {"dtype": torch.float64, "device": device}
    passes, weight = torch.tensor(sums.passes, **on), torch.tensor(sums.weight, **on)
    place = torch.tensor(sums.place, device=device)
    changed = {pair.record, *pair.others}
    is_own = (sums.first == pair.record) & (sums.stop == pair.record + 1)
    n_users, n_free = pair.data.n_users, int(sums.place.max()) + 1

    def fill(block: Replays, seed: np.random.SeedSequence) -> None:
        n, source, step = len(block), ReproducibleNoise(seed), 0
        total, played = torch.zeros((n, n_free), **on), []
        noise = torch.empty((len(sums.scales), n * n_free), **on)
        moved: dict[int, Tensor] = {}
        mine = copy.copy(twin)
        mine.begin(n)
        for user in range(n_users):
            actions, added = mine.play(user, on_neighbor)
            played.append(actions)
            total += added
            if user in changed:
                moved[step] = moved.get(step, 0.0) + mine.play(user, not on_neighbor)[1] - added
            if step < len(twin.ends) and user + 1 == twin.ends[step]:
                before, ready = int(sums.ready[step - 1]) if step else 0, int(sums.ready[step])
                for release in range(before, ready):
                    drawn = torch.from_numpy((source.laplace if sums.is_laplace[release] else source.normal)(n * n_free))
                    noise[release] = drawn.to(device) * sums.scales[release]
                answer = total + (passes[step, :ready] @ noise[:ready]).view(n, n_free)
                mine.learn((answer[:, place] * weight).view(n, *twin.shape), step + 1)
                step += 1
        score, report = torch.zeros((2, n), **on)
        for release, holds in enumerate(sums.holds):
            shifts = [holds[at] * shift for at, shift in moved.items() if at < len(holds) and holds[at]]
            if shifts:
                shift, drawn, scale = sum(shifts), noise[release].view(n, n_free), float(sums.scales[release])
                if sums.is_laplace[release]:
                    ratio = (drawn.abs() - (drawn - shift).abs()).sum(1) / scale
                else:
                    ratio = (shift * (2 * drawn - shift)).sum(1) / (2 * scale**2)
                score += ratio
                report += ratio if is_own[release] else 0.0
        sign = -1.0 if on_neighbor else 1.0
        block.log_ratio[:] = sign * score.cpu().numpy()
        block.report_log_ratio[:] = sign * report.cpu().numpy()
        observe(torch.stack(played).cpu().numpy(), algorithm, pair, block)

    return fill


def observe(actions: IntArray, algorithm: Algorithm, pair: Pair, block: Replays) -> None:
    """Fills what is kept of the actions (n_users, n_reps, n_steps), by the observers of every replay."""
    n_users, n, _ = actions.shape
    log, ones = ActionLog(), np.ones(n, dtype=np.int64)
    later = LaterActions(pair.record, n_users, algorithm.n_actions, n, block.actions, pair.data.n_steps)
    for user in range(n_users):
        record = Record(np.full(n, user), ones, None, actions[user], np.empty((n, 0)))
        log.observe(record)
        later.observe(record)
    block.action_code[:] = action_codes(log, pair.record, algorithm.n_actions)
