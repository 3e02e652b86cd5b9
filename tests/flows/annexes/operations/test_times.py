"""What `bandana explain-time` says: where the time of a suite's last command went, by the suite's journal."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from bandana.flows.annexes.operations import times
from bandana.flows.cli import app
from bandana.flows.commands.options import USER_MISTAKE

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def at(second, event, **facts):
    return {"time": (BEGUN + timedelta(seconds=second)).isoformat(timespec="milliseconds"), "event": event, **facts}


STARTED = at(3, "command started", began=BEGUN.timestamp(), steps=["benchmark", "audit"])
WORK = [
    at(4, "benchmark started"), at(10, "block done", seconds=5), at(12, "block done", seconds=6), at(13, "audit started"),
    at(20, "audit done", seconds=6), at(21, "cell tracked"),
]  # fmt: skip
DONE = at(25, "command done")


@pytest.fixture
def explain(tmp_path):
    """Writes events as the journal of a suite, and asks about it; the answer for machines, and that for people."""

    def ask(*events):
        place = tmp_path / "suites" / "small" / "log.jsonl"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("".join(f"{json.dumps(event)}\n" for event in events))
        words = ["explain-time", "small", "--data", str(tmp_path)]
        shown = [CliRunner().invoke(app, [*words, *more], catch_exceptions=False) for more in (["--json"], [])]
        assert [done.exit_code for done in shown] == [0, 0]
        return json.loads(shown[0].stdout), shown[1].stdout

    return ask


def seconds_of(facts):
    """Seconds before, playing, auditing, between and after."""
    return pytest.approx([*facts["seconds"].values()])


def test_moments_without_play_or_audit_are_counted_once():
    measured = times.shares(BEGUN.timestamp(), BEGUN.timestamp() + 25, WORK)
    assert list(measured.values()) == pytest.approx([5.0, 7.0, 6.0, 2.0, 5.0])  # before, playing, auditing, between, after
    assert times.other_share(measured) == pytest.approx(48.0)


def test_a_whole_command_is_explained_from_its_beginning_to_its_end(explain):
    facts, shown = explain(STARTED, *WORK, DONE)
    assert seconds_of(facts) == [5.0, 7.0, 6.0, 2.0, 5.0]
    assert (facts["suite"], facts["steps"], facts["notes"]) == ("small", ["benchmark", "audit"], [])
    assert (facts["began"], facts["ended"]) == (BEGUN.isoformat(), DONE["time"])
    assert facts["percent_beside"] == pytest.approx(48.0)
    rows = [line.strip("│ ").split("│") for line in shown.splitlines() if line.startswith("│")]
    assert [[word.strip() for word in row] for row in rows] == [
        ["before the first block", "5.0", "20%"], ["playing", "7.0", "28%"], ["auditing", "6.0", "24%"],
        ["between", "2.0", "8%"], ["after the last one", "5.0", "20%"],
    ]  # fmt: skip
    assert shown.splitlines()[0] == f"benchmark, audit: 25.0 s to {DONE['time']}"
    assert shown.splitlines()[-1] == "48.0 % beside playing and auditing"


def test_an_interrupted_command_is_explained_up_to_its_last_event(explain):
    facts, shown = explain(STARTED, *WORK)
    assert seconds_of(facts) == [5.0, 7.0, 6.0, 2.0, 1.0]
    assert facts["ended"] is None
    assert shown.splitlines()[-1] == "note: the command was interrupted or is still running: seconds count to its last event"


def test_a_journal_without_commands_is_explained_from_its_first_event_to_its_last(explain):
    facts, shown = explain(*WORK)
    assert seconds_of(facts) == [1.0, 7.0, 6.0, 2.0, 1.0]
    assert (facts["began"], facts["ended"], facts["steps"]) == (None, None, None)
    assert shown.startswith("unknown steps: 17.0 s to ")
    assert "note: the journal does not say when the command began and ended" in shown


@pytest.mark.parametrize("earlier", [WORK, [STARTED, *WORK], [STARTED, *WORK, DONE]])
def test_the_last_command_of_a_journal_counts(explain, earlier):
    again = at(103, "command started", began=BEGUN.timestamp() + 100, steps=["report"])
    facts, _ = explain(*earlier, again, at(104, "command done"))
    assert seconds_of(facts) == [4.0, 0.0, 0.0, 0.0, 0.0]
    assert facts["percent_beside"] == 100.0


@pytest.mark.parametrize("earlier", [WORK, [STARTED, *WORK], [STARTED, *WORK, DONE]])
def test_a_run_from_python_is_no_part_of_the_command_before_it(explain, earlier):
    facts, _ = explain(*earlier, at(104, "benchmark started"), at(110, "block done", seconds=5), at(112, "benchmark done"))
    assert seconds_of(facts) == [1.0, 5.0, 0.0, 0.0, 2.0]
    assert facts["began"] is None


def test_a_single_event_has_no_shares(explain):
    facts, _ = explain(at(4, "benchmark started"))
    assert (sum(facts["seconds"].values()), facts["percent_beside"]) == (0.0, 0.0)


@pytest.mark.parametrize(("known", "words"), [([], "it has none yet; run a spec first"), (["a", "b"], "it has: a, b")])
def test_an_unknown_suite_is_a_mistake_that_names_those_there_are(tmp_path, known, words):
    for name in known:
        (tmp_path / "suites" / name).mkdir(parents=True)
        (tmp_path / "suites" / name / "log.jsonl").write_text("")
    done = CliRunner().invoke(app, ["explain-time", "other", "--data", str(tmp_path)])
    assert done.exit_code == USER_MISTAKE
    assert f"has no journal of a suite 'other'; {words}" in done.stderr


def test_the_journal_of_a_run_has_its_command_from_beginning_to_end(uninterrupted):
    """The command's own process begins before anything that it writes, and ends after its journal."""
    done = CliRunner().invoke(app, ["explain-time", "small", "--json", "--data", str(uninterrupted.data)])
    facts = json.loads(done.stdout)
    events = [json.loads(line) for line in (uninterrupted.data / "suites" / "small" / "log.jsonl").read_text().splitlines()]
    ended = datetime.fromisoformat(facts["ended"]).timestamp()
    assert [events[0]["event"], events[-1]["event"]] == ["command started", "command done"]
    assert ended <= uninterrupted.ended
    assert sum(facts["seconds"].values()) == pytest.approx(ended - events[0]["began"])
    assert facts["seconds"]["before the first block"] > 1.0  # imports
    assert all(seconds > 0 for seconds in facts["seconds"].values())
    assert (facts["steps"], facts["notes"]) == (["benchmark", "audit", "report"], [])
