"""`bandana report --registry` drafts an entry from what is stored, and refuses in one line where too little is declared."""

import pytest
import yaml
from small_spec import SMALL
from typer.testing import CliRunner

from bandana.flows.cells.play import benchmark_block
from bandana.flows.cli import app
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import parse_spec

DECLARED = {"curator": "An office", "purpose": "Reminders", "region": "Nowhere", "people": 500, "approved": "2026-11-01"}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A data folder with one benchmark, and its spec as a mapping."""
    root = tmp_path_factory.mktemp("data")
    tree = yaml.safe_load(SMALL)
    spec, store = parse_spec(SMALL, "small.yaml", root), Store(DataFolder(root).results)
    for cell in cells_of(spec):
        for block in cell.blocks():
            benchmark_block(block, store)
    return root, tree


def drafted(stored, tmp_path, deployment):
    root, tree = stored
    place = tmp_path / "small.yaml"
    place.write_text(yaml.safe_dump(tree | ({} if deployment is None else {"deployment": deployment})))
    return CliRunner().invoke(app, ["report", str(place), "--registry", "--data", str(root)])


def test_the_command_writes_a_draft(stored, tmp_path):
    found = drafted(stored, tmp_path, DECLARED | {"approver": "An officer"})
    assert found.exit_code == 0, found.output
    assert "A draft: check every sentence" in found.output
    entry = yaml.safe_load((stored[0] / "suites" / stored[1]["name"] / "registry.yaml").read_text("utf-8"))
    assert entry["deployment"]["basic"]["data_curators"] == ["An office"]
    assert entry["deployment"]["basic"]["publication_date"] == "2026-11-01"
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] > 0


@pytest.mark.parametrize(
    ("deployment", "words"),
    [
        (None, "--registry: the spec has no block `deployment`"),
        ({"curator": "An office", "purpose": "Reminders"}, "deployment.region: the registry requires"),
        ({"purpose": "Reminders"}, "small.yaml:"),
        (DECLARED, "approved needs approver"),
        (DECLARED | {"approver": "x", "expires": "2026-10-01"}, "expires must not lie before approved"),
        (DECLARED | {"approver": "x", "sector": "Space"}, "deployment.sector"),
        (DECLARED | {"approver": "x", "people": 0}, "deployment.people"),
    ],
)
def test_a_mistake_ends_in_one_line(stored, tmp_path, deployment, words):
    found = drafted(stored, tmp_path, deployment)
    assert found.exit_code == 2
    (line,) = found.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert words in line
