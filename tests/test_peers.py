"""The comparison with other libraries: what agrees, what does not, and how a page gets its tables."""

import pytest

from benchmarks import growth, speed
from benchmarks.peers import problems, rows
from benchmarks.peers.installation import requirements


def row(check, tolerance=0.0):
    return rows.Row("a library", "library-ucb", 1, check, tolerance)


def test_regrets_of_one_law_agree_and_a_shifted_one_does_not():
    ours, near, far = [100.0, 110.0, 120.0] * 20, [104.0, 108.0, 117.0] * 20, [120.0, 130.0, 140.0] * 20
    assert rows.agreement(row("law"), ours, near)[0]
    assert not rows.agreement(row("law"), ours, far)[0]


def test_pulls_may_differ_by_the_tolerance_and_no_more():
    ours = [[5, 3, 2], [4, 4, 2]]
    agrees, words = rows.agreement(row("pulls", 1), ours, [[5, 3, 2], [5, 3, 2]])
    assert (agrees, words) == (True, "1 of 2 equal, else 1 apart")
    assert not rows.agreement(row("pulls", 1), ours, [[5, 3, 2], [6, 2, 2]])[0]


def test_one_other_action_is_not_the_same():
    assert rows.agreement(row("same"), [[0, 1]], [[0, 1]])[0]
    assert not rows.agreement(row("same"), [[0, 1]], [[0, 2]])[0]


def test_an_epsilon_below_ours_or_far_above_it_does_not_agree():
    assert rows.agreement(row("epsilon", 0.1), [1.0, 2.0], [1.05, 2.0])[0]
    assert not rows.agreement(row("epsilon", 0.1), [1.0, 2.0], [0.9, 2.0])[0]
    assert not rows.agreement(row("epsilon", 0.1), [1.0, 2.0], [1.0, 2.2])[0]


def test_a_bound_above_the_truth_does_not_agree():
    assert rows.agreement(row("bound"), [4.2], [4.3])[0]
    assert not rows.agreement(row("bound"), [4.2], [4.5])[0]


def test_actions_become_regrets_by_the_means_of_their_users():
    means = problems.contexts(1000).means
    assert rows.regrets_of("ours-linear", [means.argmax(axis=1).tolist()], 1) == [0.0]
    (regret,) = rows.regrets_of("ours-linear", [[0] * problems.USERS], 1)
    assert regret == pytest.approx((means.max(axis=1) - means[:, 0]).sum())


def test_every_library_is_pinned():
    assert all(requirement.count("==") == 1 for requirement in requirements())
    assert {"river", "MABWiser", "dp-accounting"} <= {requirement.partition("==")[0] for requirement in requirements()}


def test_a_part_of_a_page_is_replaced_and_nothing_else():
    page = "before\n<!-- plan -->\nold\n<!-- end of plan -->\nafter\n"
    assert speed.replaced(page, "plan", "new") == "before\n<!-- plan -->\nnew\n<!-- end of plan -->\nafter\n"
    with pytest.raises(ValueError, match="<!-- growth -->"):
        speed.replaced(page, "growth", "new")


def test_every_part_has_its_place_on_the_page():
    page = (speed.ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    for part in speed.PARTS:
        assert "|" in speed.replaced(page, part, "|")


def test_a_slope_is_that_of_a_power():
    sweep = growth.Sweep("w", "s", (1, 10, 100), lambda n: n, lambda n: 1, "u", "2")
    found = growth._summary(sweep, growth.np.array([[1.0, 100.0, 10_000.0], [3.0, 300.0, 30_000.0]]))
    assert found["slope"] == pytest.approx([2.0, 2.0, 2.0])
