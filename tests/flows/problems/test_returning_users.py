"""Users who return, in a spec: how many records one has, whom a promise is to, and rows beyond the declared number."""

from __future__ import annotations

import pytest

from bandana.algorithms.environments.tables import RewardTable
from bandana.flows.cells.audits import audit_key
from bandana.flows.cells.replays import subject_of_cell
from bandana.flows.cells.replicates import play
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.finite_arms import TableSpec, parse_table
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import GaussianDP, Participation, Relation

ARMS = {"kind": "bernoulli", "means": [0.2, 0.8]}
RENYI = {"alpha": 2, "epsilon": 1}


def algorithms(*levels):
    return [
        {"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {**RENYI, **({"level": level} if level else {})}}
        for level in levels
    ]


@pytest.fixture
def cells(write_spec):
    def load(environment=None, levels=("user",), **more):
        path = write_spec(environment=ARMS | (environment or {}), algorithms=algorithms(*levels), **more)
        return cells_of(load_spec(path))

    return load


def test_a_promise_to_users_needs_a_number_of_records(cells):
    with pytest.raises(SpecError, match=r"algorithms\.0\.privacy\.level: .*give bernoulli the field visits_per_user"):
        cells()
    with pytest.raises(SpecError, match="visits_apart: is for users who return"):
        cells({"visits_apart": 3})


def test_the_cell_is_named_and_claims_what_a_user_is_promised(cells):
    of_user, of_record = cells({"visits_per_user": 4}, ("user", None))
    assert (of_user.name, of_record.name) == ("adar-ucb tight eps=1 per user", "adar-ucb tight eps=1")
    assert of_user.claim().relation is Relation.USER
    assert of_user.claim().gaussian.mu == pytest.approx(of_record.claim().gaussian.mu)
    assert of_user.parameters()["epsilon"] == 1
    assert of_user.settings.privacy.epsilon == 1 / 16
    assert of_user.key != of_record.key
    assert audit_key(of_user) != audit_key(of_record)


def test_what_is_declared_of_users_changes_no_number_that_is_drawn(cells):
    (plain,), (declared,) = cells(levels=(None,)), cells({"visits_per_user": 4}, (None,))
    for seed in ("noise_seed", "reward_seed", "coin_seed"):
        drawn = [getattr(cell.blocks()[0], seed) for cell in (plain, declared)]
        assert drawn[0].spawn_key == drawn[1].spawn_key
    assert plain.blocks()[0].key != declared.blocks()[0].key
    assert "visits" not in plain.environment.facts()
    assert declared.environment.describe()["visits"] == {"most": 4, "apart": 1}


def test_a_run_accounts_for_users_beside_records(cells):
    of_user, of_record = cells({"visits_per_user": 4}, ("user", None))
    _, told = play(of_user.blocks()[0])
    assert told["user_mu"] == pytest.approx(of_user.claim().gaussian.mu)
    assert told["user_mu"] == pytest.approx(4 * told["mu"])
    arrays, told = play(of_record.blocks()[0])
    assert told["user_mu"] == pytest.approx(4 * told["mu"])
    assert arrays["user_mu_spent"][-1] == pytest.approx(4 * arrays["mu_spent"][-1])


def test_the_audit_is_of_users(cells):
    (cell,) = cells({"visits_per_user": 3, "visits_apart": 2})
    subject = subject_of_cell(cell)
    assert subject.trial.users == Participation(3, 2)
    assert subject.trial.claim.relation is Relation.USER
    assert "user-counted-as-one-record" in [control.name for control in subject.planted]


def test_the_audit_at_the_test_budget_is_of_users_too(write_spec):
    given = algorithms("user")
    given[0]["privacy"]["epsilon"] = 0.01
    (cell,) = cells_of(load_spec(write_spec(environment=ARMS | {"visits_per_user": 3}, algorithms=given)))
    near = subject_of_cell(cell).at_test_budget
    assert near.users == Participation(3)
    assert near.claim.relation is Relation.USER
    assert near.claim.gaussian.mu == pytest.approx(GaussianDP(1.0).mu)


# --- tables ---------------------------------------------------------------------------------------------------------

ROWS = b"left,right,id\n0,1,ann\n1,0,bob\n1,1,ann\n0,0,ann\n1,0,bob\n"


def table_of(content=ROWS, **more) -> RewardTable:
    item = TableSpec(kind="table", path="people.csv", **{"user": "id", "visits_per_user": 3, **more})
    return parse_table(item, content)


def test_the_column_of_users_is_no_action():
    table = table_of()
    assert table.names == ("left", "right")
    assert table.rewards.tolist() == [[0, 1], [1, 0], [1, 1], [0, 0], [1, 0]]


def test_rows_beyond_the_declared_number_are_refused_or_dropped():
    with pytest.raises(SpecError, match=r"people\.csv:5: a user has more than 2 rows; declared are up to 2 records a user"):
        table_of(visits_per_user=2)
    kept = table_of(visits_per_user=2, beyond_visits="drop")
    assert kept.rewards.tolist() == [[0, 1], [1, 0], [1, 1], [1, 0]]
    with pytest.raises(SpecError, match=r"people\.csv:5: a user comes again too soon"):
        table_of(visits_apart=2)
    # Without row 5, bob's second row comes two rows after his first.
    assert len(table_of(visits_apart=2, beyond_visits="drop").rewards) == 4


def test_nobody_is_named():
    with pytest.raises(SpecError) as error:
        table_of(visits_per_user=1)
    assert "ann" not in str(error.value)
    with pytest.raises(SpecError, match=r"people\.csv:2: the column 'id' is empty"):
        table_of(b"left,right,id\n0,1,\n")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"user": "id", "visits_per_user": None}, "user: names whose each row is; give visits_per_user too"),
        ({"user": None, "beyond_visits": "drop"}, "beyond_visits: drop needs the column"),
    ],
)
def test_what_belongs_together(more, message):
    with pytest.raises(ValueError, match=message):
        table_of(**more)


def test_a_column_that_is_missing():
    with pytest.raises(SpecError, match=r"environment\.user: people\.csv has no column 'name'"):
        table_of(user="name")
    with pytest.raises(SpecError, match="at least 2 actions beside the column 'id'"):
        table_of(b"left,id\n0,ann\n")
