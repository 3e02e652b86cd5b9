"""Refusals: each line names field, value and what to do, in at most 200 characters, and numbers are read in one way."""

import re
from pathlib import Path

import pytest
import yaml
from small_spec import SMALL

from bandana.audits.claims import ClaimError, parse
from bandana.flows.own.budgets import BudgetSpec
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.finite_arms import TableSpec, parse_table
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import LONGEST_LINE, SpecError, fitted, unknown
from bandana.privacy_core.checks import number


def _refusal(old, new):
    assert old in SMALL
    with pytest.raises(SpecError) as caught:
        cells_of(parse_spec(SMALL.replace(old, new, 1), "spec", Path()))
    return str(caught.value)


def test_a_field_of_several_types_has_one_mistake():
    items = "algorithms:\n  - {all: non-private, parameters: {beta: [1]}}\n"
    assert _refusal("algorithms:\n", items) == "spec:11: algorithms[0].parameters.beta: must be a number"


def test_a_name_in_place_of_an_environment_is_answered_with_its_kind():
    fields = yaml.safe_load(SMALL) | {"environment": "bernoulli"}
    with pytest.raises(SpecError, match=r"environment: must be names with values, such as `kind: 'bernoulli'`$"):
        parse_spec(yaml.safe_dump(fields), "spec", Path())


@pytest.mark.parametrize(
    ("line", "begin", "end"),
    [
        ("data.csv:3: a short line", "data.csv:3: a short line", "a short line"),
        (f"a.csv:1: got {'x' * 5000!r}: write it again", "a.csv:1: got 'xxx", "xxx': write it again"),
        (
            f"/{'folder/' * 60}a.csv:7: column 2 is empty: name the action",
            "/folder/",
            "/a.csv:7: column 2 is empty: name the action",
        ),
        (f"a.csv:1: {'one two ' * 90}: write three", "a.csv:1: one two", ": write three"),
        ("9" * 5000, "999", "999"),
    ],
)
def test_a_line_keeps_its_place_and_its_advice(line, begin, end):
    for short in (fitted(line), str(SpecError(line))):
        assert len(short) <= LONGEST_LINE
        assert short.startswith(begin)
        assert short.endswith(end)
    assert fitted(f"{line}\n{line}").split("\n") == [fitted(line)] * 2
    assert fitted("a\x1bb\tc") == r"a\x1bb\tc"


def test_names_that_are_unknown_are_answered_with_the_nearest():
    known = [f"algorithm-{i}" for i in range(30)]
    assert unknown("algorithm", "Algorithm-7", known, "`bandana list`") == (
        "unknown algorithm 'Algorithm-7'; did you mean 'algorithm-7'? `bandana list` shows all 30"
    )
    assert unknown("mode", "zzz", ["a", "b"], "-") == "unknown mode 'zzz'; known are a, b"
    assert _refusal("kind: bernoulli\n  means: [0.8, 0.4]", "kind: gauss").startswith(
        "spec:5: environment.kind: unknown kind 'gauss'; did you mean 'gaussian'? `bandana schema` shows all "
    )
    assert _refusal("kind: bernoulli\n", "label: x\n").startswith("spec:4: environment.kind: this field is required")
    assert _refusal("algorithm: adar-ucb", "algorithm: AdaR-UCB").startswith(
        "spec:12: algorithms[1].algorithm: unknown algorithm 'AdaR-UCB'; did you mean 'adar-ucb'? `bandana list` shows all "
    )


@pytest.mark.parametrize("text", ["1e4", "10000.0", "+1E+4", "'1e4'", "10_000", "'10000'"])
def test_a_whole_number_may_be_written_with_an_exponent(text):
    spec = parse_spec(
        SMALL.replace("horizon: 500", f"horizon: {text}").replace("epsilon: [1]", "epsilon: [1e0]"), "spec", Path()
    )
    assert spec.horizon == 10_000
    assert type(spec.horizon) is int
    assert spec.algorithms[1].privacy.epsilon == [1.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1_00", "digits are grouped by threes, as in 1_000: write '1_00' without _, or quote it"),
        ("'1_000'", "must be a number such as 1000, 0.5 or 1e-5, got '1_000'"),
        ("１２", "must be a whole number, got '１２'"),
        ("'0x10'", "must be a whole number, got '0x10'"),
        ("infinity", "must be a whole number, got 'infinity'"),
        ("1.5e0", "must be a whole number, got 1.5"),
        ("1e400", "must be a whole number, got '1e400'"),
        ("12%", "must be a whole number, got '12%'"),
    ],
)
def test_what_python_alone_reads_as_a_number_is_refused(text, said):
    assert _refusal("horizon: 500", f"horizon: {text}") == f"spec:7: horizon: {said}"


@pytest.mark.parametrize("text", ["1_000", "１２", "0x10", "nan", "infinity", "1e400", "1,5", "12%", "", "_1", "--1", "1e"])
def test_one_function_reads_numbers(text):
    with pytest.raises(ValueError, match="must be a number"):
        number(text)
    with pytest.raises(ClaimError, match="mu must be"):
        parse(f"gdp(mu={text or 'x'}, relation=reward)") if "," not in text else parse("gdp(mu=x, relation=reward)")


@pytest.mark.parametrize(("text", "value"), [(" 12 ", 12.0), ("+.5", 0.5), ("1E-3", 1e-3), ("-0", 0.0), ("7.", 7.0)])
def test_numbers_are_read(text, value):
    assert number(text) == value


LEVELS = [("epsilon: [1]", "epsilon: [{}]"), ("alpha: 2\n      epsilon: [1]", "rho: [{}]")]


@pytest.mark.parametrize("value", ["1.0e308", "1.1e9", "0.9e-9"])
def test_levels_of_privacy_have_one_range(value):
    for old, new in LEVELS:
        assert "must lie between 1e-09 and 1e+09, got" in _refusal(old, new.format(value))
    with pytest.raises(ValueError, match="must lie between 1e-09 and 1e"):
        BudgetSpec(epsilon=float(value))
    for kind, name in (("pure", "epsilon"), ("gdp", "mu"), ("zcdp", "rho")):
        with pytest.raises(ClaimError, match=f"{name} must lie between 1e-09 and 1e"):
            parse(f"{kind}({name}={value}, relation=reward)")


@pytest.mark.parametrize("value", [0.999, 0.11, 1.0, 0.0])
def test_a_delta_is_at_most_a_tenth(value):
    with pytest.raises(ValueError, match=r"less than or equal to 0\.1|greater than 0"):
        BudgetSpec(epsilon=1, delta=value)
    assert "spec:20: audit.delta: must be " in _refusal("examples: 10", f"delta: {value}")
    with pytest.raises(ClaimError, match=r"delta must be above 0 and at most 0\.1, got"):
        parse(f"approx(epsilon=1, delta={value}, relation=reward)")


def test_published_deltas_are_played_where_no_data_file_is(tmp_path):
    text = SMALL.replace("algorithm: adar-ucb\n    calibrations: [tight]", "algorithm: linucb\n    model: joint")
    text = text.replace("alpha: 2\n      epsilon: [1]", "epsilon: 1\n      delta: 0.99").replace(
        "algorithm: ucb", "algorithm: linucb"
    )
    simulated = "kind: sphere\n  actions: 2\n  dimension: 2"
    private = "kind: logged\n  path: log.csv\n  actions: [a, b]\n  contexts: [age]"
    simulated, private = (text.replace("kind: bernoulli\n  means: [0.8, 0.4]", kind) for kind in (simulated, private))
    assert parse_spec(simulated, "spec", tmp_path).algorithms[1].privacy.delta == [0.99]
    with pytest.raises(SpecError, match=r"algorithms\[1\]\.privacy\.delta: must be at most 0\.1 on files of data"):
        parse_spec(private, "spec", tmp_path)


def _table(content, **fields):
    return parse_table(TableSpec(kind="table", path="t.csv", **fields), b"a,b\n" + content)


def test_a_table_with_too_many_rows_is_refused_before_its_values_are_read():
    rows = b"x\n" * 100  # no row is one
    with pytest.raises(
        SpecError, match=r"^environment\.rows: .* 100 rows, .* at most 83: play a part, such as rows: \[0, 83\]$"
    ):
        _table(rows, high=1e5)
    with pytest.raises(SpecError, match=r"t\.csv:2: 1 values"):
        _table(rows)
    rows = b"1,100000\n" * 100
    assert _table(rows, high=1e5, rows=[10, 93]).n_users == 83
    with pytest.raises(SpecError, match=r"are exact for at most 83 users, got 84"):
        _table(rows, high=1e5, rows=[0, 84])
    with pytest.raises(SpecError, match=r"environment\.rows: t\.csv has 100 rows, got"):
        _table(rows, high=1e5, rows=[90, 101])
    assert _table(b"1,1\n" * 83, high=1e5).n_users == 83


NATURAL = yaml.safe_load((Path(__file__).parent / "natural_mistakes.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("mistake", NATURAL, ids=lambda mistake: mistake["write"])
def test_natural_mistakes_are_answered_in_plain_words(mistake):
    said = _refusal(mistake["for"], mistake["write"])
    assert re.sub(r"shows all \d+", "shows all", said) == mistake["says"]
    assert not re.search(r"Input|valid (dictionary|list|string)|(List|String|Value) |instance of|NoneType|pydantic", said)


def test_there_are_many_natural_mistakes():
    assert len(NATURAL) >= 60
