"""What `bandana audit-catalog --only` selects."""

import pytest

from bandana.audits.subjects import selected, subjects


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["block tree"], ["block tree"]),
        (["gp-ucb"], ["gp-ucb joint printed", "gp-ucb joint tight", "gp-ucb local printed", "gp-ucb local tight"]),
        (["gp-ucb-pool", "gp-ucb local"],
         ["gp-ucb local printed", "gp-ucb local tight", "gp-ucb-pool joint tight", "gp-ucb-pool local tight"]),
        (["adap-ucb*"], ["adap-ucb printed", "adap-ucb tight"]),
        (["*pure tight", "lsvi-ucb joint pure"],
         ["adar-gope pure tight", "ucrl-vtr joint pure tight", "ucrl-vtr local pure tight", "ucrl-vtr-plus joint pure tight",
          "ucrl-vtr-plus local pure tight", "lsvi-ucb joint pure printed", "lsvi-ucb joint pure tight",
          "ucb-vi joint pure tight", "ucb-vi local pure tight", "dp-ucbvi joint pure tight", "dp-ucbvi local pure tight"]),
    ],
)  # fmt: skip
def test_names_first_words_and_patterns_select_labels_in_their_order(names, labels):
    assert selected(names) == labels


def test_without_a_name_everything_is_selected():
    assert selected([]) == list(subjects())


@pytest.mark.parametrize("name", ["gp", "", "nothing*", "Block tree"])
def test_a_name_that_selects_nothing_is_refused(name):
    with pytest.raises(ValueError, match=r"selects nothing.* name algorithms of `bandana list`"):
        selected(["block tree", name])
