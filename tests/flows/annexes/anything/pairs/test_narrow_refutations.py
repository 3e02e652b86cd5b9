"""A narrow refutation is asked again: claims are set right below what first runs measure, so that no seed decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bandana.audits.claims import parse
from bandana.audits.outcome import Effort, Verdict
from bandana.flows.annexes.anything.given_pairs import on_pair
from bandana.flows.annexes.anything.outputs.calls import inspect_call
from bandana.flows.annexes.anything.pairs import stages
from bandana.flows.annexes.anything.pairs.release import Samples, examine
from bandana.flows.annexes.anything.pairs.subject import Subject
from bandana.flows.keys.provenance import about_audits
from bandana.privacy_core import PureDP

N = 4000


def answers(shift, seed):
    """Both sides' numbers with Laplace noise; the neighbor's are moved."""
    rng = np.random.default_rng(seed)
    return Samples(rng.laplace(size=N), shift + rng.laplace(size=N))


def bounded_by(claim):
    return lambda samples: examine(samples, claim, seed=0)


FIRST = answers(1.0, 0)
MEASURED = examine(FIRST, PureDP(3.0), seed=0).measured
NARROW = PureDP(0.999 * MEASURED)
"""What the first runs refute at 95 %, and not at 99.9 %."""


def settled(fresh, claim=NARROW):
    return stages._settled(FIRST, bounded_by(claim), lambda: fresh)


def unexpected():
    raise AssertionError("fresh runs were asked for")


def test_what_is_narrow():
    assert examine(FIRST, NARROW, seed=0).is_narrow
    assert not examine(FIRST, PureDP(0.3), seed=0).is_narrow  # plainly refuted
    assert not examine(FIRST, PureDP(3.0), seed=0).is_narrow  # not refuted


def test_fresh_runs_that_refute_the_claim_leave_the_first_bound():
    outcome = settled(answers(3.0, 1))
    assert (outcome.verdict, outcome.measured) == (Verdict.FAIL, MEASURED)
    assert outcome.notes[-1] == "fresh runs refute the claim too"


def test_fresh_runs_that_do_not_are_the_outcome():
    fresh = answers(0.0, 1)
    outcome = settled(fresh)
    assert (outcome.verdict, outcome.measured) == (Verdict.NOT_REFUTED, bounded_by(NARROW)(fresh).measured)
    assert f"epsilon >= {MEASURED:.6g} at first, narrowly" in outcome.notes[-1]
    assert "did not repeat" in "\n".join(outcome.lines("x"))


@pytest.mark.parametrize("fresh", [None, Samples(FIRST.data[: N // 2 - 1], FIRST.neighbor[: N // 2 - 1])])
def test_without_time_for_fresh_runs_nothing_is_decided(fresh):
    outcome = settled(fresh)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.measured <= outcome.limit < MEASURED
    assert outcome.bounds[0].level == pytest.approx(0.02 * 0.05)
    assert outcome.reasons == (
        f"epsilon >= {MEASURED:.6g} at first, narrowly, and no time was left to ask again: allow more --seconds",
    )
    about = about_audits("one given pair of data sets", (), 0)
    claim = on_pair(parse("pure(epsilon=1)", relation="pair"))
    assert outcome.recorded(claim, {"kind": "release", "name": "x"}, about).verdict is Verdict.INCONCLUSIVE


def test_half_as_many_fresh_runs_decide():
    fresh = answers(3.0, 1)
    assert settled(Samples(fresh.data[: N // 2], fresh.neighbor[: N // 2])).verdict is Verdict.FAIL


@pytest.mark.parametrize(("claim", "verdict"), [(PureDP(0.3), Verdict.FAIL), (PureDP(3.0), Verdict.NOT_REFUTED)])
def test_nothing_else_is_asked_again(claim, verdict):
    assert stages._settled(FIRST, bounded_by(claim), unexpected).verdict is verdict


def test_proofs_are_not_asked_again():
    outcome = stages._settled(
        FIRST, lambda runs: replace(bounded_by(NARROW)(runs), proofs=("it shows its seed",)), unexpected
    )
    assert outcome.verdict is Verdict.FAIL


def test_an_audit_asks_again(monkeypatch):
    """Whole: the first runs of a coin leak a little more than is claimed, later ones nothing."""
    seeds = []
    draw = stages.draw

    def drawn(caller, data, neighbor, n_runs, seed, *args, **options):
        seeds.append(seed)
        samples = draw(caller, data, neighbor, n_runs, seed, *args, **options)
        if seed != 0:
            return samples
        kept = [np.random.default_rng(4).permutation(np.arange(n_runs) % 40 < share) for share in (10, 30)]
        return replace(samples, data=kept[0], neighbor=kept[1])

    monkeypatch.setattr(stages, "draw", drawn)
    subject = Subject(inspect_call(lambda data, seed: np.random.default_rng(seed).random() < 0.5, 0, 1, 0), 0, 1)
    first = examine(drawn(subject.caller, 0, 1, N, 0, 60.0, 0), PureDP(3.0), share=1 - 2 * stages.EARLY, seed=0)
    effort = Effort(N, 0.95, 1e-5, 1, 0)
    outcome = stages.audit_subject(subject, PureDP(0.999 * first.measured), effort, 60.0)
    assert seeds[-1] == 2 * stages._FRESH
    assert outcome.verdict is Verdict.NOT_REFUTED
    assert "did not repeat" in outcome.notes[-1]
