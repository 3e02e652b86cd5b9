"""The audit of a release on one pair of data sets: runs, learned scores, one bound, and what it covers.

Runs are split in three. Scores are learned on the first part, the best of them and its bound are chosen on the second, and
the bound is taken on the third, on which nothing was chosen: it holds at the stated confidence whatever was tried. The claim
is tested in its own currency: epsilon at delta, mu, or a Renyi divergence.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from numbers import Number
from statistics import median

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.audits.bounds import methods
from bandana.audits.bounds.methods import bounds_on
from bandana.audits.claims import Quantity
from bandana.audits.leaves import leaves
from bandana.audits.neighbors.neighbor import Given
from bandana.audits.outcome import OUTPUT, StatedBound
from bandana.audits.plan import plan_release
from bandana.audits.replays.measure import rounded
from bandana.flows.annexes.anything.outputs.bounds import LEAST, SEEN, WARY, Contender, check_order, most_promising
from bandana.flows.annexes.anything.outputs.calls import Batch, BrokenSubject, Caller, Outputs, Raised, is_numeric
from bandana.flows.annexes.anything.outputs.deadline import NEVER, Deadline, TimeIsUpError
from bandana.flows.annexes.anything.outputs.encoding import Encoder, joined
from bandana.flows.annexes.anything.outputs.scores import RARE, Scorer, learn
from bandana.flows.annexes.anything.outputs.signs import with_signs
from bandana.flows.annexes.anything.pairs.outcome import ReleaseOutcome
from bandana.privacy_core import Guarantee

LEAST_RUNS = 400
"""Runs on each side, so that each of the three parts has 100, the least that a bound can be taken from."""
GIVEN = "the given pair"
_LEARN, _CHOOSE, _TURNS, _AGAIN = 0.25, 0.2, 5, 4
_TAUGHT, _CHOSEN = 0.6, 0.6
"""Shares of the time that is left: of what learns, and of what chooses."""
PARTS = (_LEARN, _CHOOSE, LEAST)
"""Shares of the runs that teach and that choose, and how many choose at least; the bound is taken from the others."""
_READ = 3.0
"""Times that an output is taken apart: to learn its columns, to screen them, and to fill them, which costs as much."""
_TIMED = 5
_ROOM = 2.5
"""Seconds of an audit for each second of its runs."""
_BATCH, _MOST_NUMBERS = 4096, 4_000_000


@dataclass(frozen=True)
class Samples:
    """Outputs of both sides, in the order in which they were made.

    Attributes:
      data: outputs on the data set.
      neighbor: outputs on its neighbor, as many.
      is_cut: whether the time ended before all runs were made.
      how: how they were made, in words.
    """

    data: Outputs
    neighbor: Outputs
    is_cut: bool = False
    how: str = "given as samples, taken to be independent"
    notes: tuple[str, ...] = field(default=())


def draw(
    caller: Caller,
    data: object,
    neighbor: object,
    n_runs: int,
    seed: int,
    seconds: float,
    least: int = LEAST_RUNS,
    kept: int = 0,
) -> Samples:
    """Runs the function on both data sets, in an order that coins decide, until all runs or the time are spent.

    Args:
      caller: the function.
      data: one data set.
      neighbor: the other.
      n_runs: on each side, at most.
      seed: root of all seeds.
      seconds: after which no further call begins; taking outputs apart counts too.
      least: runs without which nothing can be shown.
      kept: later calls that this time must suffice for too.

    Raises:
      BrokenSubject: fewer than that fit into the time.
    """
    root = np.random.SeedSequence(seed, spawn_key=(8,))
    coins = np.random.default_rng(root.spawn(1)[0])
    seeds = [np.random.default_rng(child) for child in root.spawn(2)]
    parts: tuple[list[Outputs], list[Outputs]] = ([], [])
    begun, done, size, reading = time.monotonic(), 0, 16, 0.0
    while done < n_runs:
        spent = time.monotonic() - begun + reading
        spent += kept * spent / max(1, 2 * done)
        if done and spent > seconds:
            break
        size = min(size, n_runs - done, max(1, int(done * (seconds - spent) / spent)) if done else size)
        for side in (0, 1) if coins.random() < 0.5 else (1, 0):
            numbers = seeds[side].integers(0, 2**32, size).tolist()
            parts[side].append(caller.runs((data, neighbor)[side], numbers))
        done += size
        reading += 2 * size * _seconds_to_read(parts[0][-1])
        size = _next_size(caller, parts[0][-1], size, (time.monotonic() - begun) / done)
    taken = time.monotonic() - begun
    if done < min(n_runs, least):
        raise BrokenSubject(
            f"{done} runs a side took {taken + reading:.1f} s, and fewer than {least} show nothing: allow more time with "
            f"--seconds {math.ceil(_ROOM * least * (taken + reading) / done)}, or let one call make many runs"
        )
    both = joined([*parts[0], *parts[1]])
    return Samples(both[:done], both[done:], done < n_runs, caller.batch.value, _notes(caller, both))


def _notes(caller: Caller, outputs: Outputs) -> tuple[str, ...]:
    """Remarks on runs: who draws the randomness, and what was raised."""
    notes = []
    if caller.seed is None:
        notes.append("it takes no seed and draws its own randomness: nobody can repeat these runs")
    elif not caller.is_repeatable:
        notes.append(
            "the same seed gave different outputs: it draws more randomness than its seed, and nobody can repeat it"
        )
    raised = Counter(item.kind for item in outputs if isinstance(item, Raised)) if not is_numeric(outputs) else Counter()
    return (*notes, *(f"{n} of {len(outputs)} runs raised {kind}, which counts as an output" for kind, n in raised.items()))


def _seconds_to_read(outputs: Outputs) -> float:
    """Seconds in which one output is taken apart, as often as a run is."""
    if is_numeric(outputs) or isinstance(outputs[0], Number):
        return 0.0
    taken = []
    for output in outputs[:_TIMED]:  # a busy machine interrupts some
        begun = time.monotonic()
        for _ in leaves(output):
            pass
        taken.append(time.monotonic() - begun)
    return _READ * median(taken)


def _next_size(caller: Caller, last: Outputs, size: int, seconds_a_run: float) -> int:
    """Runs of the next call, or calls before the sides change: about a quarter of a second, within reach of the memory.

    Of calls that make many runs, five seconds, as a call costs what it costs.
    """
    quick = max(1, int(0.25 / max(seconds_a_run, 1e-9)))
    numbers = np.size(last) / max(1, len(last)) if is_numeric(last) else 64
    fits = max(1, int(_MOST_NUMBERS / max(1.0, numbers)))
    return min(min(_BATCH, max(16, 20 * quick)) if caller.batch is not Batch.NONE else quick, 4 * size, fits)


def examine(
    samples: Samples,
    stated: Guarantee,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    shuffled: bool = False,
    pair: str = GIVEN,
    search: str = "",
    share: float = 1.0,
    parts: tuple[float, float, int] = PARTS,
    deadline: Deadline = NEVER,
    without: Collection[str] = (),
) -> ReleaseOutcome:
    """Bounds the claim's own quantity from below, and of a claim of epsilon at delta also delta.

    Args:
      samples: outputs of both sides.
      stated: the claim.
      confidence: of the bounds.
      seed: of the learners and of the auditor's coins.
      shuffled: whether the order of the samples says nothing, and is changed first.
      pair: the data sets, in words.
      search: how the neighbor was found, in words; empty where it was given.
      share: of the failure probability that the bounds may use.
      parts: shares of the runs that teach and that choose, and how many choose at least.
      deadline: after which nothing more is learned.
      without: names of learners to leave out.

    Raises:
      BrokenSubject: too few samples, or runs that depend on each other.
    """
    n_all = min(len(samples.data), len(samples.neighbor))
    if n_all < LEAST_RUNS and share == 1:
        raise BrokenSubject(f"each side needs at least {LEAST_RUNS} outputs, got {len(samples.data)} and "
                            f"{len(samples.neighbor)}")  # fmt: skip
    n = _affordable(samples, n_all, deadline)
    sides = [_ordered(side, n, seed + i if shuffled else None) for i, side in enumerate((samples.data, samples.neighbor))]
    encoder, notes, (taught, held, rest) = _encoded(sides, n, parts)
    left_out: list[str] = []
    scorers = learn(taught[0], taught[1], seed, without=without, deadline=deadline.part(_TAUGHT), left_out=left_out)
    bounds: list[StatedBound] = []
    scores = {}
    for index, (quantity, part) in enumerate(plan_release(stated).items()):
        level, key = part * share * (1 - confidence), f"output{index}"
        signs = with_signs(scorers, taught[0], taught[1]) if quantity.name == "epsilon" else {}
        chosen = _best(quantity, scorers, signs, held, WARY * level, seed, deadline.part(_CHOSEN), left_out)
        scores[key] = rounded(chosen.scorer(rest[0])), rounded(chosen.scorer(rest[1]))
        for score in () if shuffled else scores[key]:
            check_order(score)
        bounds.append(chosen.state(OUTPUT, Given(pair), quantity, level, scores[key], key))
    return ReleaseOutcome(
        stated=stated,
        bounds=tuple(bounds),
        scores=scores,
        n_runs=n,
        confidence=confidence,
        seed=seed,
        how=samples.how,
        is_cut=samples.is_cut or n < n_all,
        n_values=encoder.n_values,
        unread=unread_of(encoder),
        notes=(*notes, *samples.notes),
        left_out=tuple(dict.fromkeys(left_out)),
        search=search,
    )


def _affordable(samples: Samples, n: int, deadline: Deadline) -> int:
    """Number of runs, of n, that half of the time suffices to read; the first ones, which teach, say how long one takes."""
    seconds = _seconds_to_read(samples.data) + _seconds_to_read(samples.neighbor)
    return n if seconds * n <= deadline.left / 2 else min(n, max(LEAST_RUNS, int(deadline.left / 2 / seconds)))


def _encoded(
    sides: list[Outputs], n: int, parts: tuple[float, float, int]
) -> tuple[Encoder, tuple[str, ...], list[list[FloatArray]]]:
    """Encoder of the outputs, a remark on them, and the tables of both sides that teach, choose, and are bounded."""
    first = math.ceil(parts[0] * n)
    second = first + max(parts[2], math.ceil(parts[1] * n))
    encoder = Encoder.learn(sides[0][:first], sides[1][:first])
    tables = [encoder.table(side) for side in sides]
    if all(is_numeric(side) and np.isnan(table).all() for side, table in zip(sides, tables, strict=True)):
        raise BrokenSubject("every output is NaN: return numbers, labels or text")
    cuts = slice(first), slice(first, second), slice(second, None)
    return encoder, _constant(tables), [[table[cut] for table in tables] for cut in cuts]


def _best(
    quantity: Quantity,
    scorers: dict[str, Scorer],
    signs: dict[str, Scorer],
    held: list[FloatArray],
    level: float,
    seed: int,
    deadline: Deadline,
    left_out: list[str],
) -> Contender:
    """The score and the bound that held-out runs promise most of: all are compared once, and the best few again."""
    contenders: list[tuple[Contender, list[FloatArray]]] = []
    ranked = [*scorers | signs] if quantity.name != "delta" else sorted(scorers, key=lambda name: name != RARE)
    for name in ranked:
        scorer = (scorers | signs)[name]
        try:
            with (deadline if contenders else NEVER).enforced():
                scores = [rounded(scorer(table)) for table in held]
                contenders += [
                    (Contender(name, scorer, method, parameters, _promise(method, scores, level, parameters, 1)), scores)
                    for method, parameters in bounds_on(quantity, seed)[: 1 if name in signs else None]
                ]
        except TimeIsUpError:
            left_out.append(name)
    best = sorted(contenders, key=lambda one: -one[0].promise)[:_AGAIN]
    again = []
    for one, scores in best:
        try:
            with deadline.enforced():
                again.append(replace(one, promise=_promise(one.method, scores, level, one.parameters, _TURNS)))
        except TimeIsUpError:
            break
    return most_promising(again or [one for one, _ in best])


def _constant(tables: list[FloatArray]) -> tuple[str, ...]:
    """A remark where noise changes no output."""
    kept = [bool(((table == table[0]) | (np.isnan(table) & np.isnan(table[0]))).all()) for table in tables]
    if not all(kept):
        return ()
    if np.array_equal(tables[0][0], tables[1][0], equal_nan=True):
        return ("every output is the same: nothing depends on the data, or on the noise",)
    return ("every output on the data set is the same, and so is every output on the neighbor, but another one: no noise",)


def unread_of(encoder: Encoder) -> tuple[str, ...]:
    """Parts of the outputs that were not read, in words."""
    seldom = [
        f"{path or 'the output'}: {n} runs had values that no run before had"
        for path, n in encoder.missed.items()
        if n > SEEN
    ]
    return (*encoder.unread, *seldom)


def _promise(method: str, held: list[FloatArray], level: float, parameters: dict[str, float], turns: int) -> float:
    """The bound from held-out runs; one on epsilon on average over which of `turns` parts of them comes first.

    It learns from the first runs that it is given how to weight the others, and what promises much after lucky ones only is
    no promise.
    """
    if len(held[0]) < LEAST:  # it chooses, and states nothing
        held = [np.resize(side, LEAST) for side in held]
    turns = turns if {"delta", "epsilon"} & set(parameters) or method == "pure-event" else 1
    starts = [len(held[0]) * turn // turns for turn in range(turns)]
    bounds = [
        methods.bound(method, np.roll(held[0], -start), np.roll(held[1], -start), level, **parameters) for start in starts
    ]
    return math.fsum(bounds) / turns


def _ordered(side: Outputs, n: int, seed: int | None) -> Outputs:
    if seed is None:
        return side[:n]
    order = np.random.default_rng([seed, 9]).permutation(len(side))[:n]
    return side[order] if isinstance(side, np.ndarray) else [side[place] for place in order.tolist()]
