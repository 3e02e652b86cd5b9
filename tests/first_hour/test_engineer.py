"""The first hour of a platform engineer: settings, runs without a terminal, kills, nights, pages, budgets and a pipeline."""

import json
import os
import re
import signal
import socket
import sys
import urllib.error
import urllib.request
from contextlib import closing

import pytest
from desk import block, stands_on_its_pages, tasks_of, text_of

from bandana import __version__

BOOK = "docs/book.md"
CI = "docs/how-to/ci.md"
FIRST = "docs/tutorials/first-benchmark.md"
README = "README.md"
SCHEDULE = "docs/schedule.md"
TEAM = "docs/team.md"
UPKEEP = "docs/how-to/upkeep.md"
SMALL = {"8000": "3000", "[0.5, 1]": "1", "50": "20"}


def asks_for_the_version_and_for_help(desk):
    assert desk.types(README, "bandana --version") == f"bandana {__version__}\n"
    text = desk.types(README, "bandana --help")
    assert all(f"│ {name} " in text for name in ("demo", "run", "audit", "serve", "ui", "doctor", "prune", "book"))
    assert desk.runs("bandana -h") == text


def asks_the_doctor_before_anything_is_there(desk):
    findings = json.loads(desk.types(UPKEEP, "bandana doctor --json"))
    assert {finding["state"] for finding in findings} <= {"good", "note"}
    assert not (desk.folder / "bandana_data").exists()


def keeps_settings_in_a_file(desk):
    desk.saves(TEAM, "bandana.toml.example")
    whole = (desk.folder / "bandana.toml.example").read_text(encoding="utf-8")
    servers = re.search(r"^\[servers\]\n(?:(?!\[).*\n)*", whole, re.MULTILINE)
    assert servers is not None
    here = whole.replace(servers[0], "").replace("/srv/bandana/data", "bandana_data").replace("workers = 8", "workers = 2")
    (desk.folder / "bandana.toml").write_text(f'{here}password = "secret"\n', encoding="utf-8")
    assert "password" in desk.types(README, "bandana list", 2)
    (desk.folder / "bandana.toml").write_text(here, encoding="utf-8")


def sees_what_there_is_to_run(desk):
    catalog = json.loads(desk.types(CI, "bandana list --json"))
    assert len({entry["name"] for entry in catalog}) > 30


def checks_a_spec_and_sees_which_settings_hold(desk):
    desk.saves(SCHEDULE, "nightly.yaml", "name: nightly", swap=SMALL)
    text = desk.types(README, "bandana check bad.yaml", swap={"bad": "nightly"})
    assert text.endswith("nightly.yaml: correct\n")
    assert f"settings: data, defaults.workers, defaults.anonymous from {desk.folder / 'bandana.toml'}" in text


def asks_how_long_it_takes(desk):
    text = desk.types(CI, "bandana run SPEC --dry-run", swap={"SPEC": "nightly.yaml"})
    assert re.search(r"; .* of work on 2 workers, estimated", text)
    assert not list(desk.folder.glob("bandana_data/results/*"))


def loses_a_run_to_a_kill(desk):
    with desk.starts(SCHEDULE, "bandana run nightly.yaml --audit") as run:
        desk.facts["kept"] = run.until(lambda: _blocks(desk))
        os.killpg(run.process.pid, signal.SIGKILL)
    assert not (desk.folder / "bandana_data/suites/nightly/report.json").exists()


def resumes_it_with_the_same_command(desk):
    text = desk.types(SCHEDULE, "bandana run nightly.yaml --audit")
    assert text.startswith("PASS          adar-ucb tight rdp(2, 1)")
    assert re.search(r"^html  .*/bandana_data/suites/nightly/report\.html$", text, re.MULTILINE)
    blocks = _blocks(desk)
    assert blocks[: len(desk.facts["kept"])] == desk.facts["kept"]
    assert len(set(blocks)) == len(blocks), "what was finished is not played again"


def watches_progress_without_a_terminal_and_interrupts(desk):
    desk.saves(SCHEDULE, "long.yaml", "name: nightly", swap=SMALL | {"8000": "10000000", "nightly": "long"})
    with desk.starts(SCHEDULE, "bandana run nightly.yaml --audit", {"nightly": "long"}) as run:
        first = run.until(lambda: re.search(r"^long: audit: .*", run.log.read_text(), re.MULTILINE))
        assert re.fullmatch(r"long: audit: \d of \d done \(\d+ %\).*; .* so far.*", first[0])
    assert run.process.returncode == 1
    assert run.log.read_text().endswith("interrupted; finished work is kept; run the same command again to continue\n")


def _blocks(desk):
    """Results that the journal of the suite lists."""
    journal = desk.folder / "bandana_data/suites/nightly/log.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    return [event["result"] for event in map(json.loads, lines) if event["event"] == "block done"]


def records_a_baseline(desk):
    text = desk.types(SCHEDULE, "bandana baseline nightly.yaml")
    assert re.match(r"recorded: .*bandana_data/suites/nightly/baseline\.json \(regret of 2 cells, 1 audit\)\n", text)


def serves_a_night(desk):
    port = {"nightly.yaml --run": f"nightly.yaml --port {_free_port()} --run"}
    nights = desk.folder / "bandana_data/suites/nightly/nights.jsonl"
    with desk.starts(SCHEDULE, "bandana serve nightly.yaml --run nightly", port) as served:
        begun = served.until(lambda: re.search(r"^Prefect's pages: +(http:\S+)", served.log.read_text(), re.MULTILINE))
        address = begun[1]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{address}/api/flow_runs/filter", data=b"{}", timeout=60)
        served.until(lambda: nights.exists() and re.search(r"'nightly \d.*Finished in state", served.log.read_text()), 560)
    desk.facts["served"] = served.log.read_text()
    (night,) = map(json.loads, nights.read_text(encoding="utf-8").splitlines())
    assert (night["alarm"], [*night["verdicts"].values()]) == ("", ["PASS"])


def finds_each_step_by_its_name(desk):
    names = set(re.findall(r"Flow run '([^']+)' - Finished in state Completed", desk.facts["served"]))
    assert {"nightly: benchmark", "nightly: report"} < names
    assert all(name.startswith("nightly") for name in names)
    assert "next " in desk.facts["served"].split("nightly-benchmark/nightly")[1].splitlines()[0]


def passes_the_gate(desk):
    text = desk.types(SCHEDULE, "bandana run nightly.yaml")
    assert re.search(r"^gate +0 of \d comparisons are worse than the baseline", text, re.MULTILINE)


def is_stopped_by_the_gate(desk):
    """The baseline's first cell is made 20 better than it was."""
    baseline = "bandana_data/suites/nightly/baseline.json"
    before = (desk.folder / baseline).read_text(encoding="utf-8")
    final = json.loads(before)["cells"][0]["regret"]["final"]
    for field in ("value", "low", "high"):
        desk.edits(baseline, f'"{field}": {final[field]!r}', f'"{field}": {final[field] - 20!r}')
    text = desk.types(SCHEDULE, "bandana run nightly.yaml", 1)
    assert re.search(r"^gate +1 of \d comparisons are worse than the baseline", text, re.MULTILINE)
    assert re.search(r"^ +ucb: final regret .*: worse than the baseline$", text, re.MULTILINE)
    (desk.folder / baseline).write_text(before, encoding="utf-8")


def searches_the_runs_in_mlflow(desk):
    query = "tags.role = 'cell' and tags.current = 'true' and params.role = 'algorithm'"
    assert query in text_of("docs/tracking.md").splitlines()
    printed = desk.asks(f"""
from mlflow import MlflowClient
client = MlflowClient("sqlite:///{desk.folder}/bandana_data/mlflow/mlflow.db")
number = client.get_experiment_by_name("nightly").experiment_id
for run in client.search_runs([number], {query!r}, order_by=["attributes.run_name"]):
    print(run.info.run_name, "|", run.data.tags.get("verdict"), "|", run.data.metrics["regret/final"] > 0)
""")
    assert printed == "adar-ucb tight rdp(2, 1) | PASS | True\nucb | None | True\n"


def opens_the_pages_and_the_report_over_http(desk):
    with desk.starts("docs/tracking.md", "bandana ui", {"ui": f"ui --port {_free_port()}"}) as served:
        pattern = re.compile(r"^  (?:  report|nightly): (http://\S+)", re.MULTILINE)
        links = served.until(lambda: pattern.findall(served.log.read_text()))
        assert len(links) == 2
        served.until(lambda: _answer(links[0]) is not None)
        assert "MLflow" in _answer(links[0])
        assert '<p class="headline good">' in _answer(links[1])
    assert "Traceback" not in served.log.read_text()


def _answer(address):
    try:
        with urllib.request.urlopen(address.partition("#")[0], timeout=60) as answer:
            return answer.read().decode()
    except urllib.error.URLError:
        return None


def gives_a_private_data_set_one_budget(desk):
    desk.clones("experiments")
    spec = (desk.folder / "experiments/private-table.yaml").read_text(encoding="utf-8")
    budget = block(BOOK, "book: trial-2026").body.partition("  data:\n")[2]
    assert "budget: {epsilon: 3, delta: 1.0e-6}" in budget
    (desk.folder / "experiments/nights.yaml").write_text(spec.replace("  public: []\n", f"  public: []\n  data:\n{budget}"))
    text = desk.types(README, "bandana check bad.yaml", swap={"bad": "experiments/nights"})
    assert "book trial-2026: spent 0 of epsilon 3 at delta 1e-06" in text
    assert "which is refused" in text
    opened = desk.types(BOOK, "bandana book open nights.yaml", swap={"nights.yaml": "experiments/nights.yaml"})
    assert opened.startswith("book trial-2026: open")
    assert "left: one run of at most epsilon 3\n" in desk.types(BOOK, "bandana book show trial-2026")


def tidies_up_and_nothing_is_lost(desk):
    assert "would be removed: 0 results" in desk.types(UPKEEP, "bandana prune --keep 30d --dry-run")
    findings = json.loads(desk.types(UPKEEP, "bandana doctor --json"))
    assert {finding["state"] for finding in findings} <= {"good", "note"}
    (suite,) = [finding for finding in findings if finding["what"] == "suite nightly"]
    assert suite["state"] == "good"


def lets_a_pipeline_read_the_outcome(desk):
    ours = {"experiments/smoke.yaml": "nightly.yaml"}
    desk.types(CI, "bandana run experiments/smoke.yaml --audit --json > done.json", swap=ours)
    desk.sees(CI, "python -c")


def tests_privacy_in_an_own_test_suite(desk):
    noise = "np.random.default_rng(seed).laplace(scale={})"
    count = f"import numpy as np\n\n\ndef count(data, seed):\n    return sum(data) + {noise}\n\n\n"
    for scale, code, outcome in ((1.0, 0, "1 passed"), (0.2, 1, "1 failed")):
        desk.saves(CI, "test_count.py", "def test_count_is_private")
        desk.edits("test_count.py", "from bandana", f"{count.format(scale)}from bandana")
        assert outcome in desk.runs("python -m pytest -q -p no:cacheprovider test_count.py", code)


def _free_port():
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


SCRIPT = sys.modules[__name__]


@pytest.mark.nightly
@pytest.mark.parametrize("task", tasks_of(SCRIPT), ids=lambda task: task.__name__)
def test_an_hour_goes_well(desk, task):
    """In `make test`: all that is typed stands on the pages."""
    desk.does(task)


def test_all_that_is_typed_stands_on_the_pages():
    stands_on_its_pages(SCRIPT, 20)
