"""Replays on a device: they are the replays of the algorithm itself, whatever it releases and whoever changes."""

from dataclasses import fields, replace

import numpy as np
import pytest
from typer.testing import CliRunner

from bandana.algorithms.environments.data_sets import Change
from bandana.audits.neighbors.pairs import Pair, canary_pairs
from bandana.audits.outcome import ONE_RUN
from bandana.audits.plan import plan_bounds
from bandana.audits.replays.measure import measure
from bandana.audits.replays.replay import played, replay
from bandana.audits.subjects import EFFORT, subjects
from bandana.flows.annex import DEVICE
from bandana.flows.annexes.devices import replays
from bandana.flows.annexes.devices.episodes import OptimisticPlanning
from bandana.flows.annexes.devices.linear_maps import read_map
from bandana.flows.annexes.devices.regressions import OptimisticRegression, lowest_of_the_largest
from bandana.flows.cells import replays as cells
from bandana.flows.cli import app
from bandana.flows.commands import options
from bandana.flows.commands.options import USER_MISTAKE
from bandana.flows.keys.provenance import Making, about_audits
from bandana.privacy_core import Exact, FactorizedSum, Gaussian, LocalSum, TreeSum

torch = pytest.importorskip("torch")

LABELS = [
    "linucb joint printed", "linucb joint tight", "linucb local as-known", "gp-ucb joint tight", "gp-ucb local printed",
    "ucb-vi joint tight", "ucb-vi joint pure as-known", "ucb-vi local pure tight", "dp-ucbvi joint tight",
    "dp-ucbvi local pure tight",
]  # fmt: skip
N = 90


@pytest.fixture(scope="module")
def device():
    return replays.player("cpu")


def _pair(trial, index):
    return canary_pairs(trial.table, trial.probes, trial.private_records)[index]


def _seed():
    return np.random.SeedSequence(7)


def _both(device, algorithm, pair, on_neighbor, n=N):
    """The algorithm's own replays, and the device's."""
    fill = device(algorithm, pair, on_neighbor)
    assert fill is not None
    own = replay(algorithm, pair, on_neighbor, n, _seed(), workers=1)
    with played(lambda *_: fill):
        return own, replay(algorithm, pair, on_neighbor, n, _seed(), workers=1)


def _assert_same(own, other):
    np.testing.assert_array_equal(other.actions, own.actions)
    np.testing.assert_array_equal(other.action_code, own.action_code)
    np.testing.assert_allclose(other.log_ratio, own.log_ratio, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(other.report_log_ratio, own.report_log_ratio, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("label", LABELS)
def test_a_device_makes_the_replays_of_the_algorithm(device, label):
    trial = subjects()[label]().trial
    for index, on_neighbor, width in ((0, True, 1.0), (1, False, 0.2), (-1, False, 1.0)):
        algorithm = replace(trial.algorithm, beta_scale=width)
        own, other = _both(device, algorithm, _pair(trial, index), on_neighbor)
        assert np.ptp(own.log_ratio) > 0
        _assert_same(own, other)


def test_a_user_s_several_records_change_together(device):
    trial = subjects()["linucb joint tight"]().trial
    pair = Pair.of_user(trial.table, (3, 9, 40), Change(0.0, 1.0))
    own, other = _both(device, trial.algorithm, pair, True)
    one = replay(trial.algorithm, Pair.of(trial.table, 3, Change(0.0, 1.0)), True, N, _seed(), workers=1)
    assert own.log_ratio.std() > 1.2 * one.log_ratio.std()
    _assert_same(own, other)


def test_matrices_without_a_factorization_get_their_eigenvalues_raised(device, monkeypatch):
    trial = subjects()["linucb local as-known"]().trial
    weak = replace(trial.algorithm, matrix_norm=0.05, ridge=0.5)
    raised = []
    real = OptimisticRegression.learn

    def counted(self, answer, step):
        matrix = answer[:, :, : self.shape[0]] + weak.shift(step).added * self._torch.eye(self.shape[0], **self._on)
        raised.append(int((self._torch.linalg.eigvalsh(matrix)[:, 0] <= 0).sum()))
        real(self, answer, step)

    monkeypatch.setattr(OptimisticRegression, "learn", counted)
    own, other = _both(device, weak, _pair(trial, 1), False)
    assert sum(raised) > 100
    _assert_same(own, other)


@pytest.mark.parametrize("label", ["ucb-vi joint tight", "dp-ucbvi joint tight", "ucb-vi joint pure as-known"])
def test_plans_are_the_algorithm_s_whatever_was_counted(label):
    """Rows of no visits, of few and of many, and noise that makes counts negative; widths that matter, and that do not."""
    trial = subjects()[label]().trial
    generator = np.random.default_rng(5)
    small = tuple(errors._replace(visits=0.1, total=0.1) for errors in trial.algorithm.errors)
    for width, errors in ((1.0, small), (0.03, small), (0.03, trial.algorithm.errors), (0.001, trial.algorithm.errors)):
        algorithm = replace(trial.algorithm, beta_scale=width, errors=errors)
        counts = generator.gamma(0.3, 10.0 ** generator.uniform(-1, 4, (3000, 1, 1, 1, 1)), (3000, *algorithm.shape))
        noisy = counts + generator.normal(0, 3, counts.shape)
        noisy[..., algorithm.n_states :] = noisy[..., : algorithm.n_states].sum(-1, keepdims=True)
        noisy[..., algorithm.n_states] *= generator.uniform(-0.5, 0.5, noisy.shape[:-1])
        released = algorithm.init(len(noisy))[1]
        released.n_looks[:] = 1
        algorithm.plan(noisy, released)
        twin = OptimisticPlanning(algorithm, _pair(trial, 0), "cpu")
        twin.begin(len(noisy))
        twin.learn(torch.from_numpy(noisy), 1)
        np.testing.assert_array_equal(twin._policy.numpy(), released.policy)


def test_regressions_are_the_algorithm_s_where_matrices_are_singular():
    trial = subjects()["linucb joint tight"]().trial
    algorithm = replace(trial.algorithm, matrix_norm=0.0, ridge=1e-6)
    generator, d = np.random.default_rng(5), algorithm.n_features
    root = generator.standard_normal((400, d, d))
    gram = root @ root.transpose(0, 2, 1)
    gram[::2, :2, :2] = 1.0
    gram[::2, 2:] = gram[::2, :, 2:] = 0.0
    gram[::2, 1, 1] += np.resize([2e-15, 1e-9, -0.5, 1e-3], 200)  # a pivot below rounding, a small one, a negative one
    gram[::2, range(2, d), range(2, d)] = 1.0
    statistic = np.concatenate([gram - algorithm.shift(3).added * np.eye(d), generator.standard_normal((400, d, 1))], axis=2)
    model = algorithm.init(400)[1]
    algorithm._learn(model, statistic, 3)
    twin = OptimisticRegression(algorithm, _pair(trial, 0), "cpu")
    twin.begin(400)
    twin.learn(torch.from_numpy(statistic), 3)
    np.testing.assert_allclose(twin._width.numpy(), model.width, rtol=1e-4)
    np.testing.assert_allclose(twin._inverse.numpy(), model.inverse, rtol=1e-4, atol=1e-4 * np.abs(model.inverse).max())


def test_of_actions_that_tie_the_lowest_is_taken():
    index = torch.tensor([[1.0, 1 + 1e-12, 0.5], [1.0, 1 + 1e-6, 0.5], [-1.0, -1 - 1e-12, -1.0]], dtype=torch.float64)
    assert lowest_of_the_largest(index).tolist() == [0, 1, 0]
    assert lowest_of_the_largest(index.flip(1)).tolist() == [1, 1, 0]


def test_what_differs_from_the_algorithm_is_not_believed(device, monkeypatch):
    trial = subjects()["linucb joint tight"]().trial
    pair, real = _pair(trial, 1), OptimisticRegression.learn

    def wrong(self, answer, step):
        real(self, answer, step)
        self._width = 1.5 * self._width

    monkeypatch.setattr(OptimisticRegression, "learn", wrong)
    assert device(trial.algorithm, pair, False) is None
    own = replay(trial.algorithm, pair, False, N, np.random.SeedSequence(3))
    with played(device):
        other = replay(trial.algorithm, pair, False, N, np.random.SeedSequence(3))
    np.testing.assert_array_equal(other.log_ratio, own.log_ratio)
    np.testing.assert_array_equal(other.actions, own.actions)


def test_a_score_that_differs_is_not_believed(device, monkeypatch):
    trial = subjects()["ucb-vi joint tight"]().trial
    real = replays.read_map
    monkeypatch.setattr(replays, "read_map", lambda *sums: (made := real(*sums))._replace(holds=1.001 * made.holds))
    assert device(trial.algorithm, _pair(trial, 1), False) is None


def test_subclasses_and_other_algorithms_are_replayed_as_they_are(device):
    trial = subjects()["linucb joint tight"]().trial

    class Faulty(type(trial.algorithm)):
        pass

    faulty = Faulty(**{field.name: getattr(trial.algorithm, field.name) for field in fields(trial.algorithm)})
    assert device(faulty, _pair(trial, 0), False) is None

    class Leaking(FactorizedSum):
        """A sum that leaks where no sample of replays shows it."""

    sums, mechanism = trial.algorithm.sums, trial.algorithm.sums.mechanism
    leaking = replace(trial.algorithm, sums=Leaking(mechanism, sums.n_steps))
    assert device(leaking, _pair(trial, 0), False) is None

    class Quiet(type(mechanism)):
        """A mechanism that draws what it likes."""

    quiet = Quiet(**{field.name: getattr(mechanism, field.name) for field in fields(mechanism)})
    assert device(replace(trial.algorithm, sums=replace(sums, mechanism=quiet)), _pair(trial, 0), False) is None
    other = subjects()["adar-ucb tight"]().trial
    assert device(other.algorithm, _pair(other, 0), False) is None
    other = subjects()["gp-ucb joint tight"]().trial
    turned = np.tile(np.arange(other.algorithm.n_actions)[::-1], (64, 1))
    assert device(replace(other.algorithm, preference=turned), _pair(other, 0), False) is None


def test_what_has_no_release_or_would_fill_the_memory_is_replayed_as_it_is(device, monkeypatch):
    trial = subjects()["gp-ucb joint tight"]().trial
    assert device(trial.algorithm, _pair(trial, 0), False) is not None
    other = subjects()["ucb-vi joint tight"]().trial
    assert device(replace(other.algorithm, looks=(), errors=()), _pair(other, 0), False) is None
    monkeypatch.setattr(replays, "_MOST_BYTES", 1 << 20)
    assert device(trial.algorithm, _pair(trial, 0), False) is None


def test_the_matrices_of_a_tree_and_of_messages_are_those_of_their_definition():
    tree = read_map(TreeSum(Gaussian(1.0, 2.0), 4), (2,), (1, 2, 3, 4))
    np.testing.assert_array_equal(tree.holds, [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]])
    np.testing.assert_array_equal(tree.passes, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]])
    np.testing.assert_array_equal(tree.first, [0, 0, 2, 0])
    np.testing.assert_array_equal(tree.stop, [1, 2, 3, 4])
    assert tree.scales.tolist() == [2.0] * 4
    messages = read_map(LocalSum(Gaussian(1.0, 2.0)), (), (1, 2, 3))
    np.testing.assert_array_equal(messages.holds, np.eye(3))
    np.testing.assert_array_equal(messages.passes, np.tri(3))


@pytest.mark.parametrize("n_steps", [5, 40])
def test_the_matrices_of_a_factorization_multiply_to_the_running_sum(n_steps):
    made = read_map(FactorizedSum(Gaussian(1.0, 1.0), n_steps), (1,), range(1, n_steps + 1))
    np.testing.assert_allclose(made.passes @ made.holds, np.tri(n_steps), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(made.holds, axis=0), 1.0, rtol=1e-6)


def test_a_twin_without_noise_is_left_to_the_algorithm(device):
    trial = subjects()["linucb joint tight"]().trial
    exact = replace(trial.algorithm, sums=LocalSum(Exact()))
    assert device(exact, _pair(trial, 0), False) is None


@pytest.mark.parametrize("label", ["gp-ucb joint tight", "ucb-vi local tight"])
def test_bounds_on_a_device_are_the_same(device, label):
    subject = subjects()[label]()
    trial, effort = subject.trial, replace(EFFORT, replays=1000)
    plan = tuple(planned for planned in plan_bounds(trial.claim.stated, effort.delta) if planned.view != ONE_RUN)
    own = measure(trial.algorithm, [_pair(trial, 1)], effort, plan).bounds
    with played(device):
        other = measure(trial.algorithm, [_pair(trial, 1)], effort, plan).bounds
    assert max(bound.lower for bound in own) > 0.1
    assert [bound.lower for bound in other] == pytest.approx([bound.lower for bound in own], rel=1e-4, abs=1e-6)
    assert [bound.attack for bound in other] == [bound.attack for bound in own]


def test_an_audit_plays_on_the_device_that_is_named(monkeypatch):
    trial = subjects()["ucb-vi local tight"]().trial
    monkeypatch.setattr(cells, "audit", lambda *_, **__: replay(trial.algorithm, _pair(trial, 1), False, N, _seed()))
    plays = []
    monkeypatch.setattr(replays, "_filler", lambda *own, real=replays._filler: plays.append(own[-1]) or real(*own))
    own = cells.audit_of_subject(subjects()["ucb-vi local tight"](), EFFORT, about_audits)
    assert not plays
    monkeypatch.setenv(DEVICE, "cpu")
    _assert_same(own, cells.audit_of_subject(subjects()["ucb-vi local tight"](), EFFORT, about_audits))
    assert plays == ["cpu"]


def test_what_a_device_replayed_says_so(monkeypatch):
    made = Making().record(is_anonymous=True)
    assert "torch" not in made["versions"]
    monkeypatch.setenv(DEVICE, "cpu")
    made = Making().record(is_anonymous=True)
    assert made["versions"]["torch"].endswith(" on cpu")


@pytest.mark.parametrize("words", [("audit-catalog",), ("audit", "spec.yaml"), ("run", "spec.yaml")])
def test_a_device_that_is_not_there_is_refused_before_any_work(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").touch()
    for name in ("nosuch", "cuda:77"):
        done = CliRunner().invoke(app, [*words, "--device", name, "--data", str(tmp_path / "data")])
        assert done.exit_code == USER_MISTAKE
        assert f"torch cannot use '{name}'" in " ".join(done.stderr.replace("│", " ").split())
        assert not (tmp_path / "data").exists()


def test_without_the_annex_the_option_is_refused(monkeypatch):
    monkeypatch.setattr(options, "plugged", lambda point: {})
    done = CliRunner().invoke(app, ["audit-catalog", "--device", "cpu"])
    assert done.exit_code == USER_MISTAKE
    assert "need the annex" in " ".join(done.stderr.split())
