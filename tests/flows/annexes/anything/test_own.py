"""`bandana audit-own`: a user's own file, from its mistakes to its verdict; and the tutorial, command by command."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner
from whole_evidence import assert_follows_from_its_scores

from bandana.audits.contents import numbers_sha256
from bandana.audits.reporting import validate
from bandana.flows.annexes.anything.files import ALGORITHM, FUNCTION
from bandana.flows.annexes.anything.own import Request, load
from bandana.flows.cli import app
from bandana.flows.commands.options import FAILURE, USER_MISTAKE
from bandana.flows.texts.mistakes import SpecError

ROOT = Path(__file__).parents[4]
EXAMPLES = ROOT / "examples"
CLAIM = "gdp(mu=1, relation=reward)"
FEW = ("--replays", "1000", "--rounds", "8", "--examples", "10")
SMALL = ("--replays", "2000", "--rounds", "16", "--examples", "20")


@pytest.fixture
def bandana(before_forks, tmp_path, monkeypatch):
    monkeypatch.setenv("BANDANA_DATA", str(tmp_path / "bandana_data"))

    def call(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return call


@pytest.fixture
def write(tmp_path):
    """Writes the example with some text replaced, and returns FILE.py:bandit."""

    def write(*changes, text=None, name="mine.py", what="bandit"):
        source = (EXAMPLES / "own_bandit.py").read_text() if text is None else text
        for old, new in changes:
            assert old in source
            source = source.replace(old, new)
        (tmp_path / name).write_text(source)
        return f"{tmp_path / name}:{what}"

    return write


EPISODES = """\
import numpy as np
from dataclasses import dataclass
from bandana.privacy_core import Gaussian, Interval, Span


@dataclass(frozen=True)
class Cheapest:
    episode_length: int = 2
    n_states: int = 3
    n_actions: int = 2
    reward_range: Interval = Interval(0.0, 1.0)

    def init(self, n_reps):
        return (), np.zeros((n_reps, 2, 3, 2))

    def act(self, released, context, step):
        return released[np.arange(len(context)), step, context].argmin(axis=1)

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=int)

    def absorb(self, sensitive, released, record, ledger):
        value = np.zeros_like(released)
        value[np.arange(len(value))[:, None], np.arange(2), record.states[:, :-1], record.actions] = record.rewards
        noisy = ledger.release(Gaussian(2.0, 1.0), value, records=Span(record.user, record.user + 1))
        return (), released + noisy


mine = Cheapest()
"""
"""A local algorithm of episodes: two rewards of at most 1 leave their places, two enter others, sqrt(4) in all."""


def _said(done):
    return " ".join((done.stderr or done.output).split())


def test_helpers_of_one_name_beside_two_files_are_told_apart(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper.py").write_text(f"VALUE = {folder!r}\n")
        (tmp_path / folder / "mine.py").write_text("from helper import VALUE\ndef play(rewards, seed):\n    return VALUE\n")
        assert load(f"{tmp_path / folder / 'mine.py'}:play").subject(None, 0) == folder
    (tmp_path / "late.py").write_text("def play(rewards, seed):\n    from mine import play\n    return play\n")
    (tmp_path / "mine.py").write_text("")
    with pytest.raises(SpecError, match=r"late.py:2: imports the local module mine inside a function: import it at the top"):
        load(f"{tmp_path / 'late.py'}:play")


# --- verdicts ------------------------------------------------------------------------------------------------------


def test_the_honest_example_passes_and_writes_evidence_and_report(bandana, tmp_path):
    done = bandana("audit-own", EXAMPLES / "own_bandit.py:bandit", "--claim", CLAIM, *SMALL)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("PASS          own_bandit.py:bandit: all actions are 1-GDP (replace one reward)")
    assert re.search(r"mu: claimed 1\.0000  >=  accounted 1\.0000  >=  measured 0\.\d{4}", done.stdout)
    assert done.stdout.count("  caught ") == 12
    folder = tmp_path / "bandana_data" / "own"
    assert_follows_from_its_scores(folder / "own_bandit-bandit.evidence.npz")
    document = json.loads((folder / "own_bandit-bandit.json").read_text())
    validate(document)
    assert document["audits"][0]["verdict"] == "PASS"
    assert document["audits"][0]["parameters"]["length"] == "4"
    assert "own_bandit.py:bandit" in (folder / "own_bandit-bandit.html").read_text()
    assert "/work" not in json.dumps(document["commands"])


@pytest.mark.parametrize("noise", [pytest.param("2.0", marks=pytest.mark.nightly), "2**0.5"])
def test_an_algorithm_of_episodes_is_audited_as_any_other(bandana, write, tmp_path, noise):
    """Right for whole trajectories, or for rewards alone, which `make test` plays."""
    effort = SMALL if noise == "2.0" else FEW
    mine = write(("2.0, 1.0", f"{noise}, 1.0"), text=EPISODES, what="mine")
    done = bandana("audit-own", mine, "--claim", "gdp(mu=1, relation=record, trust=local)", *effort)
    assert done.exit_code == (0 if noise == "2.0" else FAILURE), done.output
    document = json.loads((tmp_path / "bandana_data" / "own" / "mine-mine.json").read_text())
    validate(document)
    (environment,) = document["environments"]
    assert (environment["unit"], environment["actions"]) == ("episodes", ["action 0", "action 1"])
    described = f"{effort[3]} episodes of 2 steps x 3 states x 2 actions that lead anywhere"
    assert environment["description"].startswith(described)
    (audit,) = document["audits"]
    assert audit["verdict"] == ("PASS" if noise == "2.0" else "FAIL")
    if noise != "2.0":
        assert re.search(r"release \d+ moved by [\d.]+, 1\.\d+ times its sensitivity 1\.41421", done.output)
        assert "episode  states" in done.output


@pytest.mark.parametrize(
    ("text", "change", "claim", "shown"),
    [
        ("contexts", ("noisy * x)", "record.rewards * x)"), CLAIM, "field 'moments' of the released state differs"),
        (
            "episodes",
            ("released + noisy", "released + noisy + 1e-9 * (record.states[:, -1:, None, None] == 2)"),
            "gdp(mu=1, relation=record, trust=local)",
            "changes from (states",
        ),
    ],
)
def test_leaks_of_contextual_and_episodic_algorithms_fail(bandana, write, text, change, claim, shown):
    """Exact rewards in the estimate, and a state that one sees in the last bits of the released state."""
    source = EPISODES if text == "episodes" else (EXAMPLES / "own_contextual.py").read_text()
    done = bandana("audit-own", write(change, text=source, what="mine" if text == "episodes" else "bandit"),
                   "--claim", claim, *FEW)  # fmt: skip
    assert done.exit_code == FAILURE, done.output
    assert done.stdout.startswith("FAIL ")
    assert shown in _said(done)


def test_an_honest_contextual_algorithm_passes(bandana):
    done = bandana("audit-own", EXAMPLES / "own_contextual.py:bandit", "--claim", CLAIM, *SMALL)
    assert done.exit_code == 0, done.output
    assert re.search(r"changes \([\d,]+ with drawn contexts\) among 1\d listed values and [\d,]+ drawn ones", done.stdout)


KINDS = ("declare context_dimension if it reads contexts", "episode_length and n_states if it plays episodes")


@pytest.mark.parametrize(
    ("text", "change", "words"),
    [
        ("contexts", ("    context_dimension: int = 2\n", ""), ("not needed by one that declares context_dimension",)),
        ("contexts", ("context_dimension: int = 2", "context_dimension: float = 0.5"), ("must be a whole number",)),
        ("contexts", ("context_dimension: int = 2", "n_states: int = 2"), ("both episode_length and n_states",)),
        ("episodes", ("    episode_length: int = 2\n    n_states: int = 3\n", ""), KINDS),
        ("episodes", ("    n_states: int = 3\n", ""), ("it declares episode_length",)),
    ],
)
def test_an_unknown_kind_of_problem_is_told_with_the_attribute_that_names_it(bandana, write, text, change, words):
    source = EPISODES if text == "episodes" else (EXAMPLES / "own_contextual.py").read_text()
    source = source.replace("self.context_dimension", "2")
    mine = write(change, text=source, what="mine" if text == "episodes" else "bandit")
    done = bandana("audit-own", mine, "--claim", CLAIM, *FEW)
    assert done.exit_code == USER_MISTAKE, done.output
    assert all(word in _said(done) for word in words)


def test_noise_on_a_grid_that_rewards_are_not_rounded_to_is_a_mistake(bandana, write, tmp_path):
    """The mistake is in a module beside the file, so that no line of the file itself stands in the traceback."""
    source = EPISODES.replace("Gaussian(2.0, 1.0)", "DiscreteGaussian(2.0, 1.0, grid=0.25)").replace(
        "Gaussian,", "DiscreteGaussian,", 1
    )
    (tmp_path / "grids.py").write_text(source)
    mine = write(text="from grids import mine\n", what="mine")
    done = bandana("audit-own", mine, "--claim", "zcdp(rho=0.5, relation=record, trust=local)", *FEW)
    assert done.exit_code == USER_MISTAKE, done.output
    assert "any reward in the declared range [0, 1] may come: where noise has a grid, round rewards to it" in _said(done)


def test_the_broken_example_fails_with_the_release_that_leaks(bandana):
    done = bandana("audit-own", EXAMPLES / "broken_bandit.py:bandit", "--claim", CLAIM, *SMALL)
    assert done.exit_code == FAILURE
    assert done.stdout.startswith("FAIL ")
    assert "accounted 1.0000  <  measured" in done.stdout
    assert re.search(r"release \d+ declares the records \[\d+, \d+\), yet its exact value moved", done.stdout)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("self.reward_range.width, 1 / self.mu", "self.reward_range.width / 2, 1 / self.mu"), "times its sensitivity"),
        (("noisy, n_rewards = ", "_, n_rewards = "), "name 'noisy'"),
        (("self.reward_range.width, 1 / self.mu", "self.reward_range.width, 0.7 / self.mu"), "accounted exceeds claimed"),
    ],
)
def test_small_mistakes_in_the_example_are_found(bandana, write, change, what):
    done = bandana("audit-own", write(change), "--claim", CLAIM, *FEW)
    assert done.exit_code != 0
    assert what in done.output + done.stderr


def test_reading_the_sensitive_state_in_a_decision_fails(bandana, write):
    """The exact sum is smuggled into the released state."""
    leak = write(
        ("phase, noisy, n_rewards =", "exact = phase.total[ended].copy()\n            phase, noisy, n_rewards ="),
        ("total[ended, arm] += noisy", "total[ended, arm] += exact"),
    )
    done = bandana("audit-own", leak, "--claim", CLAIM, *FEW)
    assert done.exit_code == FAILURE
    assert "both runs saw the same released values" in _said(done) + done.output


def test_a_black_box_passes_and_its_leaky_twin_fails(bandana, tmp_path):
    for name, verdict, code in (("play", "NOT REFUTED", 0), ("leaky", "FAIL", FAILURE)):
        done = bandana(
            "audit-own",
            EXAMPLES / f"black_box.py:{name}",
            "--claim",
            CLAIM,
            "--replays",
            "3000",
            "--rounds",
            "16",
        )
        assert done.exit_code == code, done.output
        assert done.stdout.startswith(verdict)
        assert "no ledger to account" in done.stdout
        assert_follows_from_its_scores(tmp_path / "bandana_data" / "own" / f"black_box-{name}.evidence.npz")


def test_the_same_request_gives_the_same_evidence_but_for_when_it_was_made(bandana, tmp_path):
    file = tmp_path / "bandana_data" / "own" / "own_bandit-bandit.evidence.npz"
    found = []
    for seed in (3, 3, 4):
        bandana("audit-own", EXAMPLES / "own_bandit.py:bandit", "--claim", CLAIM, *FEW, "--seed", seed)
        found.append(numbers_sha256(file))
    assert found[0] == found[1] != found[2]


def test_too_few_replays_are_inconclusive_with_exit_code_1(bandana):
    done = bandana(
        "audit-own", EXAMPLES / "own_bandit.py:bandit", "--claim", "gdp(mu=8, relation=reward)",
        "--replays", "1000", "--confidence", "0.999999", "--rounds", "16", "--examples", "10",
    )  # fmt: skip
    assert done.exit_code == FAILURE
    assert done.stdout.startswith("INCONCLUSIVE")
    assert "1000 replays are too few" in done.stdout


def test_a_class_a_builder_and_an_instance_are_all_loaded(write):
    source = "\n\ndef build(n_actions):\n    return EpisodicGreedy(n_actions)\n"
    for what, arms, expected in (
        ("bandit", None, 2),
        ("EpisodicGreedy", None, 2),
        ("EpisodicGreedy", 4, 4),
        ("build", 3, 3),
    ):
        text = (EXAMPLES / "own_bandit.py").read_text() + source
        loaded = load(write(text=text, what=what), arms)
        assert loaded.kind == ALGORITHM
        assert loaded.subject.n_actions == expected


def test_a_function_is_told_by_its_seed(write):
    loaded = load(str(EXAMPLES / "black_box.py:leaky"))
    assert loaded.kind == FUNCTION
    assert loaded.subject(np.zeros((3, 8, 2)), 0).shape == (3, 8)


def test_loading_leaves_nothing_beside_the_file(write, tmp_path):
    load(write())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py"]


# --- mistakes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("audit",), "Missing argument 'spec'"),
        (("audit-own",), "Missing argument 'FILE.py:NAME'"),
        (("audit-catalog", "--rounds", "9"), "No such option: --rounds"),
        (("audit-catalog", "--only", "nothing"), "--only: 'nothing' selects nothing; name algorithms of"),
        (("audit-catalog", "--replays", "10"), "--replays must be at least 1000, got 10"),
        (("audit", "x.yaml", "--only", "block tree"), "No such option: --only"),
        (("audit", "x.yaml", "--algorithm", "a.py:b"), "unexpected extra argument(s) (a.py:b)"),
        (("audit", "x.yaml", "--replays", "2000", "--probe", "3"), "No such option: --replays"),
        (("audit-own", "{own}"), '--claim: is missing, such as --claim "gdp(mu=1, relation=reward)"'),
        (("audit-own", "{own}", "--claim", "gdp(mu=1)"), "add relation=reward, record or trajectory"),
        (("audit-own", "{own}", "--claim", CLAIM, "--relation", "record"), "'reward' in the claim and 'record' beside it"),
        (("audit-own", "{own}", "--claim", "gdp(mu=1, relation=record)"), "give both one relation"),
        (("audit-own", "{own}", "--claim", CLAIM, "--trust", "local"), "one release reads 4 records"),
        (("audit-own", "{own}", "--claim", CLAIM, "--replays", "10"), "--replays must be at least 1000, got 10"),
        (("audit-own", "{own}", "--claim", CLAIM, "--confidence", "1"), "--confidence must lie strictly between 0 and 1"),
        (("audit-own", "{own}", "--claim", CLAIM, "--delta", "0"), "--delta must be above 0 and at most 0.1"),
        (("audit-own", "{own}", "--claim", CLAIM, "--examples", "0"), "--examples must be at least 1"),
        (("audit-own", "{own}", "--claim", CLAIM, "--seed", "-1"), "--seed must be at least 0"),
        (("audit-own", "{own}", "--claim", CLAIM, "--rounds", "2"), "--rounds must be at least 3 here, got 2"),
        (("audit-own", "{own}", "--claim", CLAIM, "--arms", "3"), "has 2 actions, got 3"),
        (("audit-own", "{own}", "--claim", CLAIM, "--probe", "32"), "--probe must lie in [0, 32)"),
        (("audit-own", "{box}", "--claim", CLAIM, "--probe", "31"), "--probe must lie before the last of 32 rounds"),
        (("audit-own", "{box}", "--claim", CLAIM, "--arms", "1"), "--arms must be at least 2"),
        (("audit-own", "{box}", "--claim", CLAIM, "--trust", "local"), "a promise on messages"),
        (("audit-own", "{box}", "--claim", CLAIM, "--low", "1", "--high", "0"), "a range needs finite ends, low < high"),
        (("audit-own", "own_bandit", "--claim", CLAIM), "must be FILE.py:NAME"),
        (("audit-own", "nowhere.py:bandit", "--claim", CLAIM), "nowhere.py cannot be read"),
        (("audit-own", "{own}s", "--claim", CLAIM), "it defines Sensitive, Released, EpisodicGreedy, bandit"),
        (("audit-own", "{folder}/black_box.py:LENGTH", "--claim", CLAIM), "draws its own randomness"),
        (("audit-own", "{folder}/own_bandit.py:Released", "--claim", CLAIM), "needs total, pulls, clock"),
        (("audit-own", "{folder}/own_bandit.py:OTHER", "--claim", CLAIM), "defines no 'OTHER'"),
    ],
)
def test_a_mistake_ends_with_2_and_one_clear_message(bandana, tmp_path, arguments, message):
    own, box = EXAMPLES / "own_bandit.py:bandit", EXAMPLES / "black_box.py:play"
    done = bandana(*(a.format(own=own, box=box, folder=EXAMPLES) if isinstance(a, str) else a for a in arguments))
    assert done.exit_code == USER_MISTAKE, done.output
    assert message in _said(done)
    assert not (tmp_path / "bandana_data" / "own").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def bandit(:\n", "mine.py:1: invalid syntax"),
        ("import nothing_of_that_name\nbandit = 1\n", "mine.py:1: ModuleNotFoundError"),
        ("\nbandit = 1 / 0\n", "mine.py:2: ZeroDivisionError"),
        ("raise SystemExit(3)\n", "mine.py:1: SystemExit: 3"),
        ("bandit = 1\n", "it lacks n_actions: number of actions, an attribute reward_range"),
        ("\n\nimport random\nbandit = 1\n", "mine.py:3: import random"),
        ("import numpy as np\nZ = np.random.normal()\nbandit = Z\n", "mine.py:2: np.random"),
        ("def bandit(rewards):\n    return rewards\n", "it must return whole numbers of shape (5, 32)"),
        ("def bandit(rewards, seed):\n    return rewards.nothing\n", "mine.py:2: AttributeError"),
        ("def bandit(rewards, seed):\n    return None\n", "it must return whole numbers of shape (5, 32)"),
        ("x = 'a\x00'\n", "mine.py:1: source code string cannot contain null bytes"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(bandana, write, text, message):
    done = bandana("audit-own", write(text=text), "--claim", CLAIM)
    assert done.exit_code == USER_MISTAKE, done.output
    assert message in _said(done)
    assert "Traceback" not in done.output + done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("def hold(self", "def held(self"), "it lacks hold: hold(released, actions)"),
        (("return self.length - released", "return 1 + self.length - released"), "hold promises that act keeps its answer"),
        (("best = np.argmax(", "best = np.zeros(3) + np.argmax("), "mine.py:"),
        (("n_actions: int = 2", "n_actions: int = 1"), "must be a whole number of at least 2"),
        (("= Interval(0.0, 1.0)", "= (0, 1)"), "reward_range must be a bandana.privacy_core.Interval, got (0, 1)"),
        (("best = np.argmax(", "best = np.max("), "act must answer an array of whole numbers"),
    ],
)  # fmt: skip
def test_what_breaks_the_protocol_is_told(bandana, write, change, message):
    done = bandana("audit-own", write(change), "--claim", CLAIM)
    assert done.exit_code == USER_MISTAKE, done.output
    assert message in _said(done)


def test_randomness_is_refused_before_a_line_of_the_file_runs(write, tmp_path):
    reference = write(text=f"import random\nopen({str(tmp_path / 'ran')!r}, 'w').close()\nbandit = 1\n")
    with pytest.raises(SpecError, match="draws its own randomness"):
        load(reference)
    assert not (tmp_path / "ran").exists()


def test_hidden_randomness_is_found_by_playing_twice(bandana, write):
    hidden = write(
        ("import numpy as np", "import itertools\n\nimport numpy as np\n\nCOUNT = itertools.count()"),
        ("return np.where(episode < self.n_actions, episode, best)",
         "return np.where(episode < self.n_actions, episode, int(next(COUNT) % 7 == 0))"),
    )  # fmt: skip
    done = bandana("audit-own", hidden, "--claim", CLAIM)
    assert done.exit_code == USER_MISTAKE
    assert "it draws its own randomness, or keeps something from one run to the next" in _said(done)


def test_a_request_has_the_defaults_that_the_help_names(bandana):
    request = Request("a.py:b", CLAIM)
    shown = bandana("audit-own", "--help-all").output
    for value in (request.replays, request.rounds, request.confidence, request.examples):
        assert str(value) in shown


# --- the tutorial --------------------------------------------------------------------------------------------------

TUTORIAL = (ROOT / "docs" / "bring-your-own.md").read_text(encoding="utf-8")


def _commands():
    # Blocks after a comment are run with their page, by `tests/test_docs.py`.
    for block in re.findall(r"(?<!-->\n)```console\n(.*?)```", TUTORIAL, re.S):
        command, *shown = block.rstrip().split("\n")
        if not command.startswith("$ bandana "):
            continue  # public code, which must be cloned first
        yield command.removeprefix("$ bandana "), shown


def _about_the_evidence(lines):
    """Lines but for those that say who computed it, where and with what: another reader's differ."""
    return [line.rstrip() for line in lines if line.partition(" ")[0] not in ("computed", "with", "on", "from", "numbers")]


def _alike(found, promised):
    """Whether two lines say the same; numbers may differ by a little where processors do."""
    number = r"-?\d+\.\d+(?:e-?\d+)?"
    assert re.sub(number, "#", found) == re.sub(number, "#", promised)
    for one, other in zip(re.findall(number, found), re.findall(number, promised), strict=True):
        assert float(one) == pytest.approx(float(other), rel=0.02, abs=1e-3)


def _says(found, promised):
    """Whether the output is what the page shows, where `...` stands for any lines."""
    places = [place for place, line in enumerate(promised) if line == "..."]
    starts, ends = [0, *(place + 1 for place in places)], [*places, len(promised)]
    done = 0
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        block = promised[start:end]
        if number:
            last = len(found) - len(block)
            done = last if end == len(promised) else next(k for k in range(done, last) if found[k] == block[0])
        for one, other in zip(found[done : done + len(block)], block, strict=True):
            if "SHA-256" not in one:
                _alike(one, other)
        done += len(block)
    assert places or done == len(found), "\n".join(found)


def test_what_a_page_leaves_out_is_any_lines():
    found = ["a 1.0", "b", "c", "d 2.0", "e"]
    for promised in (
        ["a 1.0", "b", "c", "d 2.0", "e"],
        ["a 1.0", "..."],
        ["a 1.0", "...", "e"],
        ["a 1.0", "...", "c", "..."],
    ):
        _says(found, promised)
    for promised in (["a 1.0"], ["a 1.1", "..."], ["b", "..."], ["a 1.0", "...", "d 2.0"]):
        with pytest.raises((AssertionError, ValueError)):
            _says(found, promised)


@pytest.mark.nightly
def test_every_command_of_the_tutorial_prints_what_it_shows(bandana, tmp_path, monkeypatch):
    """In `make test`: the honest example and the broken one above, with fewer replays."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    rewards = np.zeros((32, 2))
    np.save("a.npy", rewards)
    rewards[2:4] = 1.0
    np.save("c.npy", rewards)
    commands = list(_commands())
    assert len(commands) == 11
    for command, promised in commands:
        done = bandana(*shlex.split(command))
        found = _about_the_evidence((done.stdout + done.stderr).rstrip().split("\n"))
        _says(found, _about_the_evidence(promised))


def test_every_file_of_the_tutorial_exists():
    named = re.findall(r"`(examples/[\w./-]*)`", TUTORIAL)
    assert len(named) >= 3
    for name in named:
        assert (ROOT / name).exists(), name
