"""Links in the descriptions of experiments and runs: to the page that compares all cells, to the report, to a cell's audit.

They are relative to MLflow's own pages, so they work on any address. Text that a reader writes around the links stays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import quote

from bandana.flows.texts.file_names import file_name
from bandana.flows.tracking.comparison_view import compare_page
from bandana.flows.tracking.experiments import Experiments
from bandana.flows.tracking.store.client import TAG_LENGTH, TrackingStore

NOTE = "mlflow.note.content"
_LINE = re.compile(r"^Open: \[.*$", re.MULTILINE)
_FORMATS = ("html", "pdf", "json")


def with_links(text: str, links: Mapping[str, str]) -> str:
    """A description that ends with one line of links, or has its line of links replaced.

    Args:
      text: Markdown.
      links: words -> address.
    """
    return _with_line(text, "Open: " + " · ".join(f"[{words}]({address})" for words, address in links.items()))


def described_anew(text: str, before: str, experiment_id: str) -> str:
    """A new description with the line of links that the one before has; without one, with a link to the comparison page."""
    match = _LINE.search(before)
    return with_links(text, _compared(experiment_id)) if match is None else _with_line(text, match.group())


def _with_line(text: str, line: str) -> str:
    if _LINE.search(text):
        return _LINE.sub(lambda _: line, text)
    return f"{text[: TAG_LENGTH - len(line) - 2].rstrip()}\n\n{line}".lstrip()


def _compared(experiment_id: str) -> dict[str, str]:
    return {"all cells compared": compare_page(experiment_id)}


def link_report(
    store: TrackingStore, experiments: Experiments, suite: str, suite_run: str, artifacts: Collection[str]
) -> None:
    """Links a suite's report from the experiment and from all its current runs, and each cell's audit from its run."""
    experiment = experiments.of(suite)
    number = str(experiment.experiment_id)

    def artifact(stem: str) -> str | None:
        name = next((name for kind in _FORMATS if (name := f"{stem}.{kind}") in artifacts), None)
        return None if name is None else f"#/experiments/{number}/runs/{suite_run}/artifacts/{quote(name)}"

    common = _compared(number) | ({} if (report := artifact("report")) is None else {"report of the suite": report})
    before = store.client.get_experiment(number).tags.get(NOTE, "")
    if (text := with_links(before, common)) != before:
        store.client.set_experiment_tag(number, NOTE, text)
    known = experiments.current(experiment)
    for key, run in [*known.items()]:
        own = artifact(file_name(run.tags.get("cell", run.name))) if key[0] == "cell" else None
        note = run.tags.get(NOTE, "")
        text = with_links(note, common if own is None else common | {"audit of this cell": own})
        if text != note:
            store.client.set_tag(run.run_id, NOTE, text)
            known[key] = run._replace(tags={**run.tags, NOTE: text})
