"""Names as people read them: the guarantee in place of the level of a claim's own definition."""

from bandana.audits.names import titled, titles_of, with_titles


def test_a_level_gives_way_to_the_guarantee_and_nothing_else_of_the_name_does():
    assert (
        titled("adac-ucb tight rho=0.5 beta=2 on trial", "all actions are 0.5-zCDP")
        == "adac-ucb tight zcdp(0.5) beta=2 on trial"
    )
    assert titled("linucb joint tight eps=4.377", "the actions of all other users are (4.37718, 1e-05)-DP") == (
        "linucb joint tight dp(4.37718, 1e-05)"
    )
    assert titled("mine", "the output is 1-GDP") == "mine"
    assert titled("mine eps=1", "a promise in other words") == "mine eps=1"


def test_labels_that_state_different_claims_or_would_have_one_title_keep_their_names():
    first, other = {"label": "a eps=1", "claim": "(2, 1)-RDP"}, {"label": "a eps=1", "claim": "(1, 1e-05)-DP"}
    assert titles_of({"rows": [first, first]}) == {"a eps=1": "a rdp(2, 1)"}
    assert titles_of({"rows": [first, other]}) == {}
    assert titles_of([first, {"label": "a eps=1.0", "claim": {"statement": "(2, 1)-RDP"}}]) == {}
    assert titles_of({"title": "no rows", "label": "ucb", "claim": None}) == {}


def test_a_title_stands_wherever_the_whole_label_stood():
    titles = {"a eps=1": "a pure(1)", "a eps=1 on b": "a dp(1, 0.1) on b", "c eps=1": r"\c \g<0>"}
    texts = [
        "a eps=1",
        "of a eps=1, and 'a eps=1'.",
        "a eps=1 without noise",
        "a eps=1 on b: worse",
        "aa eps=1",
        "a eps=10",
        "c eps=1",
    ]
    shown = [
        "a pure(1)",
        "of a pure(1), and 'a pure(1)'.",
        "a pure(1) without noise",
        "a dp(1, 0.1) on b: worse",
        "aa eps=1",
        "a eps=10",
    ]
    assert with_titles(texts, titles) == [*shown, r"\c \g<0>"]
    document = {"a eps=1": 1.5, "commands": ["bandana x a eps=1"], "spec": "a eps=1", "rows": [{"label": "a eps=1"}, None]}
    named = {"a eps=1": 1.5, "commands": ["bandana x a eps=1"], "spec": "a eps=1", "rows": [{"label": "a pure(1)"}, None]}
    assert with_titles(document, titles) == named
