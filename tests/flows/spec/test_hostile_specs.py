"""Specs that crash, hang or mean something else than they say: each is refused in one line, with its place and value."""

import re
import time
import tracemalloc
from pathlib import Path

import pytest
from small_spec import SMALL

from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.queries.explain import explain
from bandana.flows.spec.spec import load_spec, parse_spec
from bandana.flows.texts.mistakes import SpecError

_LAUGHS = "l0: &l0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 10)
)
_MERGED = "l0: &l0 {x: 1}\n" + "".join(f"l{i}: &l{i} {{<<: [{', '.join([f'*l{i - 1}'] * 9)}]}}\n" for i in range(1, 10))
HOSTILE = {
    "a number of 5000 digits": (
        "horizon: 500",
        f"horizon: {'9' * 5000}",
        "spec:7: horizon: a number has at most 320 digits, got 5,000: 99",
    ),
    "in hexadecimal": ("horizon: 500", f"horizon: 0x{'f' * 5000}", "spec:7: horizon: a number has at most 320 digits"),
    "10^19": (
        "horizon: 500",
        f"horizon: 1{'0' * 19}",
        "spec:7: horizon: must be less than or equal to 1000000000000000, got 10",
    ),
    "10^300": ("horizon: 500", f"horizon: 1{'0' * 300}", "spec:7: horizon: "),
    "a tag and another value": (
        "horizon: 500",
        "horizon: !!int 'abc'",
        "spec:7: horizon: must be a whole number, got 'abc'",
    ),
    "a day that is none": (
        "horizon: 500",
        "horizon: !!timestamp 2001-99-99",
        "spec:7: horizon: must be a date, got '2001-99-99'",
    ),
    "the same without a tag": ("horizon: 500", "horizon: 2001-99-99", "spec:7: horizon: must be a date, got '2001-99-99'"),
    "an object": (
        "horizon: 500",
        "horizon: !!python/object/apply:os.system [id]",
        "spec:7: horizon: the tag 'tag:yaml.org,2002:python",
    ),
    "deep nesting": ("[0.8, 0.4]", "[" * 20_000, "spec:6: "),
    "deep nesting that ends": ("[0.8, 0.4]", "[" * 900 + "]" * 900, "spec:6: a spec nests at most 40 levels"),
    "deep nesting of blocks": (
        "name: small",
        "\n".join(f"{' ' * i}a:" for i in range(300)),
        "spec:41: a spec nests at most 40 levels",
    ),
    "a billion laughs": (
        "name: small",
        f"{_LAUGHS}name: small",
        "a spec has at most 100,000 values, counting what aliases (*) stand for",
    ),
    "merged ones": (
        "name: small",
        f"{_MERGED}name: small",
        "a spec has at most 100,000 values, counting what aliases (*) stand for",
    ),
    "an alias of itself": ("[0.8, 0.4]", "&a [0.8, *a]", "spec:6: *a stands within itself"),
    "no alias": ("[0.8, 0.4]", "*a", "spec:6: not valid YAML: "),
    "a million characters": (
        "A small experiment",
        "x" * 1_100_000,
        "spec: a spec has at most 1,048,576 characters, got 1,1",
    ),
    "a value of a hundred thousand": (
        "A small experiment",
        "x" * 100_000,
        "spec:2: title: a value has at most 10,000 characters",
    ),
    "a long wrong word": (
        "algorithm: ucb\n",
        f"algorithm: {'x' * 5000}\n",
        "spec:11: algorithms[0].algorithm: unknown algorithm 'xx",
    ),
    "a field twice": ("seed: 7", "seed: 7\nseed: 8", "spec:4: seed: stands twice, first in line 3; remove one"),
    "a nested field twice": (
        "rounds: 16",
        "rounds: 16\n  rounds: 17",
        "spec:19: audit.rounds: stands twice, first in line 18; remove one",
    ),
    "true for 1": ("horizon: 500", "horizon: true", "spec:7: horizon: must be a number, got true"),
    "yes for 1": ("seed: 7", "seed: yes", "spec:3: seed: must be a number, got true"),
    "true for 1.0": ("[0.8, 0.4]", "[true, 0.4]", "spec:6: environment.means[0]: must be a number, got true"),
    "true for an epsilon": (
        "epsilon: [1]",
        "epsilon: [true]",
        "spec:16: algorithms[1].privacy.epsilon[0]: must be a number, got true",
    ),
    "false for a rate": ("alpha: 2", "alpha: false", "spec:15: algorithms[1].privacy.alpha: must be a number, got false"),
    "base 60": ("horizon: 500", "horizon: 12:30", "spec:7: horizon: YAML reads 12:30 as a number to base 60"),
    "base 8": ("horizon: 500", "horizon: 0500", "spec:7: horizon: YAML reads 0500 as a number to base 8"),
    "a list for a name": ("seed: 7", "? [a]\n: 7", "spec:3: spec: the name of a field is a word"),
    "a character that moves the cursor": (
        "title: A small",
        'title: "x"\n"a\\nb": A small',
        "spec:3: spec: the name of a field is printable",
    ),
    "a value that does": (
        "title: A small experiment",
        'title: "\\e[31m A small experiment"',
        "spec:2: title: a value is text without control characters, got '\\x1b' in it",
    ),
    "a path that ends early": (
        "kind: bernoulli",
        'kind: "bern\\0oulli"',
        "spec:5: environment.kind: a value is text without control characters",
    ),
    "nothing that is something": ("horizon: 500", "horizon: !!null 3", "spec:7: horizon: must be nothing, got '3'"),
    "more actions than memory": (
        "kind: bernoulli\n  means: [0.8, 0.4]",
        "{kind: rkhs, contexts: 5, actions: 1000000}",
        "spec:5: environment.actions: must be less than or equal to 4096, got 1000000",
    ),
    "more points than a kernel's table": (
        "kind: bernoulli\n  means: [0.8, 0.4]",
        "{kind: rkhs, contexts: 100, actions: 100}",
        "spec:5: environment.contexts: contexts times actions must be at most 4,096 points, got 10,000",
    ),
    "more vectors than memory": (
        "kind: bernoulli\n  means: [0.8, 0.4]",
        "{kind: sphere, actions: 10000000000, dimension: 3}",
        "spec:5: environment.actions: must be less than or equal to 10000, got 10000000000",
    ),
    "a process whose table is too large": (
        "kind: bernoulli\n  means: [0.8, 0.4]",
        "{kind: modes, states: 200, actions: 1000, dimension: 100}",
        "spec:5: environment.states: states times actions times dimension must be at most 1,000,000, got 20,000,000",
    ),
    "a null byte": ("name: small", "name: sm\x00all", "spec:1: not valid YAML: "),
    "a hundred million files": ("block_size: 4", "block_size: 1\nseed_: 1", "spec:10: seed_: unknown field"),
}


def _refusal(text):
    start = time.process_time()
    with pytest.raises(SpecError) as caught:
        cells_of(parse_spec(text, "spec", Path()))
    assert time.process_time() - start < 1  # milliseconds, but for a machine that is forty times slower
    return str(caught.value)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_spec_is_refused_in_one_line_with_its_place_and_value(name):
    old, new, expected = HOSTILE[name]
    assert old in SMALL
    message = _refusal(SMALL.replace(old, new, 1))
    assert expected in message
    assert message.startswith("spec")
    assert "\n" not in message
    assert len(message) <= 200
    assert not re.search(r"[^\W_]{201}", message)  # no value of more than 200 characters


def test_very_many_mistakes_are_told_by_the_first_twenty():
    message = _refusal(SMALL.replace("[0.8, 0.4]", f"[{', '.join(['2'] * 1000)}]"))
    lines = message.split("\n")
    assert len(lines) == 21
    assert lines[19] == "spec:6: environment.means[19]: must be less than or equal to 1, got 2"
    assert lines[20] == "spec: 980 more mistakes of this kind"


@pytest.mark.parametrize("epsilon", ["1.0e300", "1.7e308", "1.0e-300", "5.0e-324"])
def test_an_epsilon_without_noise_for_it_is_refused_with_its_place(epsilon):
    assert "spec:16: algorithms[1].privacy.epsilon[0]: " in _refusal(SMALL.replace("epsilon: [1]", f"epsilon: [{epsilon}]"))


def test_what_yaml_can_say_well_is_read_as_before():
    text = SMALL.replace("[0.8, 0.4]", "&arms [0.8, 4e-1]").replace("audit:\n", "audit: &effort\n  delta: 1e-5\n")
    spec = parse_spec(text.replace("horizon: 500", "horizon: 5e2").replace("seed: 7", "seed: 0x7"), "spec", Path())
    assert (spec.horizon, spec.seed, spec.audit.delta) == (500, 7, 1e-5)
    assert spec.environment[0].means == [0.8, 0.4]
    merged = text.replace(
        "algorithm: adar-ucb\n    calibrations: [tight]",
        "algorithm: adar-ucb\n    <<: {calibrations: [tight], model: x}\n    model: central",
    )
    assert [cell.name for cell in cells_of(parse_spec(merged, "spec", Path()))] == ["ucb", "adar-ucb tight eps=1"]


def test_a_cell_has_no_more_files_than_a_folder_can_list():
    text = SMALL.replace("replications: 6", "replications: 100000000").replace("block_size: 4", "block_size: 1")
    assert "spec:9: block_size: must be at least 10000 for 100000000 replications, as every block is a file" in _refusal(
        text
    )
    parse_spec(text.replace("block_size: 1\n", "block_size: 10000\n"), "spec", Path())


def test_what_never_ends_is_not_read_to_its_end(tmp_path):
    text = SMALL.replace("kind: bernoulli\n  means: [0.8, 0.4]", "kind: table\n  path: /dev/zero")
    with pytest.raises(SpecError, match="/dev/zero is not a regular file"):
        cells_of(parse_spec(text, "spec", tmp_path))
    with pytest.raises(SpecError, match=r"/dev/zero: a spec has at most 4,194,304 bytes"):
        load_spec(Path("/dev/zero"))


def test_the_most_blocks_of_a_cell_are_explained_in_little_memory():
    text = SMALL.replace("replications: 6", "replications: 100000000").replace("block_size: 4", "block_size: 10000")
    tracemalloc.start()
    try:
        found = explain(Plan.of(parse_spec(text, "spec", Path())), ["benchmark", "audit", "report"], None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [cell["blocks"] for cell in found["cells"]] == [10_000, 10_000]
    assert peak < 200 << 20
