"""A recorded run replayed: equal schedules compare, unequal ones are marked where they part."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import span

from bandana.privacy_core import Exact, Gaussian, Laplace, LiveLedger, ReproducibleNoise, ScriptedLedger

N_REPS = 4
GAUSS, LAPLACE = Gaussian(1.0, 0.5), Laplace(1.0, 2.0)
ODD = np.array([1, 3])
OTHERS = [Gaussian(1.0, 0.6), Gaussian(2.0, 0.25), Laplace(1.0, 0.5), Exact()]


def values(change=0.0):
    """Three releases' exact values; `change` is what the replaced record adds to the second one."""
    first = np.arange(4.0)
    second = np.arange(8.0).reshape(4, 2) + np.array([change, -2 * change])
    return first, second, np.array([7.0, 9.0])


def play(ledger, change=0.0):
    first, second, third = values(change)
    return [
        ledger.release(GAUSS, first, records=span(0, 2, 4)),
        ledger.release(GAUSS, second, records=span(2, [5, 6, 7, 8], 4)),
        ledger.release(LAPLACE, third, records=span(8, 9, 2), reps=ODD),
    ]


@pytest.fixture
def recorded():
    live = LiveLedger(N_REPS, ReproducibleNoise(np.random.SeedSequence(4)), keeps_transcript=True)
    outputs = play(live)
    return outputs, live.transcript


def test_the_same_run_replays(recorded):
    outputs, transcript = recorded
    scripted = ScriptedLedger(N_REPS, transcript)
    for expected, found in zip(outputs, play(scripted), strict=True):
        assert np.array_equal(expected, found)
    scripted.finish()
    assert (scripted.log_ratio == 0).all()
    assert (scripted.diverged == -1).all()


def test_a_neighbor_gets_the_same_outputs_and_the_gaussian_privacy_loss(recorded):
    outputs, transcript = recorded
    scripted = ScriptedLedger(N_REPS, transcript, keeps_values=True)
    for expected, found in zip(outputs, play(scripted, change=0.25), strict=True):
        assert np.array_equal(expected, found)
    scripted.finish()
    assert (scripted.diverged == -1).all()
    noise = outputs[1] - values()[1]
    shift = np.array([0.25, -0.5])
    # (|noise|^2 - |noise - shift|^2) / (2 scale^2), scale = 0.5.
    by_hand = ((noise**2).sum(axis=1) - ((noise - shift) ** 2).sum(axis=1)) / 0.5
    assert scripted.log_ratio == pytest.approx(by_hand, rel=1e-12)
    assert all(np.array_equal(a, b) for a, b in zip(scripted.values, values(0.25), strict=True))
    assert not np.array_equal(scripted.values[1], transcript[1].value)


def test_a_script_may_be_answered_in_other_calls(recorded):
    """The same releases of each replicate, grouped in another way, are the same run."""
    outputs, transcript = recorded
    scripted = ScriptedLedger(N_REPS, transcript, keeps_values=True)
    first, second, third = values(0.25)
    stops = np.array([5, 6, 7, 8])
    for rep in (2, 0):
        only = np.array([rep])
        assert scripted.release(GAUSS, first[only], records=span(0, 2), reps=only) == outputs[0][only]
    scripted.release(GAUSS, first[ODD], records=span(0, 2, 2), reps=ODD)
    assert np.array_equal(scripted.release(GAUSS, second, records=span(2, stops, 4)), outputs[1])
    assert np.array_equal(scripted.release(LAPLACE, third, records=span(8, 9, 2), reps=ODD), outputs[2])
    scripted.finish()
    whole = ScriptedLedger(N_REPS, transcript)
    play(whole, change=0.25)
    assert (scripted.diverged == -1).all()
    assert np.array_equal(scripted.log_ratio, whole.log_ratio)
    assert all(np.array_equal(a, b) for a, b in zip(scripted.values, values(0.25), strict=True))


def test_another_span_diverges_in_its_replicate_only(recorded):
    outputs, transcript = recorded
    scripted, whole = ScriptedLedger(N_REPS, transcript), ScriptedLedger(N_REPS, transcript)
    play(whole, change=0.25)
    first, second, third = values(0.25)
    scripted.release(GAUSS, first, records=span(0, 2, 4))
    found = scripted.release(GAUSS, second, records=span(2, [5, 6, 6, 8], 4))
    assert scripted.diverged.tolist() == [-1, -1, 1, -1]
    same = [0, 1, 3]
    assert np.array_equal(found[same], outputs[1][same])
    assert np.array_equal(found[2], second[2]), "answered with its exact value"
    scripted.release(LAPLACE, third, records=span(8, 9, 2), reps=ODD)
    scripted.finish()
    assert scripted.diverged.tolist() == [-1, -1, 1, -1]
    assert np.array_equal(scripted.log_ratio[same], whole.log_ratio[same])
    assert scripted.log_ratio[2] == 0, "nothing after the parting counts"


def test_after_the_parting_nothing_is_compared_any_more(recorded):
    """Replicate 3 parts at its second release; its third agrees with the record again and must not count."""
    _, transcript = recorded
    scripted = ScriptedLedger(N_REPS, transcript, keeps_values=True)
    first, second, third = values()
    scripted.release(GAUSS, first, records=span(0, 2, 4))
    scripted.release(GAUSS, second, records=span(2, [5, 6, 7, 7], 4))
    found = scripted.release(LAPLACE, third + 0.5, records=span(8, 9, 2), reps=ODD)
    scripted.finish()
    assert scripted.diverged.tolist() == [-1, -1, -1, 1]
    assert found[0] == transcript[2].output[0]
    assert found[1] == third[1] + 0.5
    assert scripted.log_ratio[1] != 0
    assert scripted.log_ratio[3] == 0
    assert scripted.values[2][0] == third[0] + 0.5
    assert np.isnan(scripted.values[2][1])


@pytest.mark.parametrize("other", OTHERS)
def test_another_mechanism_diverges(recorded, other):
    _, transcript = recorded
    scripted = ScriptedLedger(N_REPS, transcript)
    first, second, third = values()
    scripted.release(GAUSS, first, records=span(0, 2, 4))
    stops = np.array([5, 6, 7, 8])
    scripted.release(GAUSS, second[ODD], records=span(2, stops[ODD], 2), reps=ODD)
    scripted.release(other, second[[0, 2]], records=span(2, [5, 7], 2), reps=np.array([0, 2]))
    scripted.release(LAPLACE, third, records=span(8, 9, 2), reps=ODD)
    scripted.finish()
    assert scripted.diverged.tolist() == [1, -1, 1, -1]


def test_one_release_more_diverges(recorded):
    _, transcript = recorded
    scripted = ScriptedLedger(N_REPS, transcript)
    play(scripted)
    assert (scripted.diverged == -1).all()
    extra = np.array([5.0, 6.0])
    found = scripted.release(GAUSS, extra, records=span(9, 10, 2), reps=np.array([0, 1]))
    scripted.finish()
    assert scripted.diverged.tolist() == [2, 3, -1, -1]
    assert np.array_equal(found, extra)


def test_one_release_less_is_seen_by_finish(recorded):
    _, transcript = recorded
    scripted = ScriptedLedger(N_REPS, transcript)
    first, second, third = values()
    scripted.release(GAUSS, first, records=span(0, 2, 4))
    scripted.release(GAUSS, second, records=span(2, [5, 6, 7, 8], 4))
    scripted.release(LAPLACE, third[:1], records=span(8, 9), reps=np.array([1]))
    assert (scripted.diverged == -1).all()
    scripted.finish()
    assert scripted.diverged.tolist() == [-1, -1, -1, 2]


def test_a_run_that_stops_early_is_seen_by_finish(recorded):
    _, transcript = recorded
    scripted = ScriptedLedger(N_REPS, transcript)
    scripted.release(GAUSS, values()[0], records=span(0, 2, 4))
    scripted.finish()
    assert scripted.diverged.tolist() == [1, 1, 1, 1]


def test_a_run_that_was_silent():
    silent, loud = ScriptedLedger(2, []), ScriptedLedger(2, [])
    silent.finish()
    assert silent.diverged.tolist() == [-1, -1]
    found = loud.release(GAUSS, np.array([3.0]), records=span(0, 1), reps=np.array([1]))
    loud.finish()
    assert found.tolist() == [3.0]
    assert loud.diverged.tolist() == [-1, 0]


def test_a_transcript_is_not_changed_by_its_reader(recorded):
    outputs, transcript = recorded
    kept = [output.copy() for output in outputs]
    for found in play(ScriptedLedger(N_REPS, transcript)):
        found += 100.0
    assert all(np.array_equal(entry.output, before) for entry, before in zip(transcript, kept, strict=True))
