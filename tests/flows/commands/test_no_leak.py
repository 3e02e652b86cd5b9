"""A private data file's values, and names that are left out, reach nothing that a run writes: all of it is searched."""

import _socket
import base64
import hashlib
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import traceback
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import yaml

from bandana.flows.cells.play import BENCHMARK
from bandana.flows.folder.store import Store
from bandana.flows.own.data import SECRET, pinned
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.spec.spec import load_spec

pytestmark = pytest.mark.slow


USER, HOST = "annofthelab", "machineofann"  # pages break words at punctuation
NAMES = {**dict.fromkeys(("LOGNAME", "USER", "LNAME", "USERNAME"), USER), "HOSTNAME": HOST}
# Python runs it in every process before anything else.
_NAMED = f"""
import _socket, os, pwd, socket

account, machine = pwd.getpwuid, os.uname()
pwd.getpwuid = lambda number: pwd.struct_passwd(("{USER}", *account(number)[1:]))
os.uname = lambda: os.uname_result((machine[0], "{HOST}", *machine[2:]))
socket.gethostname = _socket.gethostname = lambda: "{HOST}"
socket.getfqdn = lambda name="": "{HOST}.example.org"
"""


def _as_a_user(*arguments, named):
    """A command in a process of its own; `named` is a folder from which it takes what user and machine are called."""
    (named / "sitecustomize.py").write_text(_NAMED)
    path = os.pathsep.join(filter(None, (str(named), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "bandana", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=600, env={**os.environ, **NAMES, "PYTHONPATH": path},
    )  # fmt: skip


@contextmanager
def _named():
    """The same names in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patched = ((pwd, "getpwuid"), (os, "uname"), (socket, "gethostname"), (socket, "getfqdn"), (_socket, "gethostname"))
        for module, name in patched:
            patch.setattr(module, name, getattr(module, name))  # to be put back
        for name, value in NAMES.items():
            patch.setenv(name, value)
        exec(_NAMED, {})
        yield


@pytest.fixture(scope="module", params=[[], ["regret"]], ids=["nothing public", "regret public"])
def ran(request, bandana, drawn, laid_out, tmp_path_factory):
    """A benchmark on a private table; (spec path, rows, data folder, outputs).

    Where nothing is public also audits, the gate and --debug logs, without names: the first command is a process of its own,
    with a server whose log and database lie in the data folder.
    """
    from small_spec import SMALL

    folder = tmp_path_factory.mktemp("private")
    rows = np.round(np.random.default_rng(5).uniform(0.1, 0.9, (600, 2)) * np.array([1.0, 0.7]), 9)
    text = "stay,go\n" + "".join(f"{a!r},{b!r}\n" for a, b in rows.tolist())
    (folder / "people.csv").write_text(text)
    tree = yaml.safe_load(SMALL) | {"environment": {"kind": "table", "path": "people.csv", "public": request.param}}
    spec = folder / "spec.yaml"
    spec.write_text(yaml.safe_dump(tree))
    data = Path(shutil.copytree(laid_out, folder / "data"))
    outputs = []
    (folder / "named").mkdir()
    if not request.param:
        first = ("run", "--audit", "--debug", "--anonymous")
        done = _as_a_user(*first, spec, "--data", data, named=folder / "named")
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout + done.stderr)
    for command in [["run"]] if request.param else [["baseline"], ["run", "--json", "--anonymous"], ["check"]]:
        with _named():
            ended = bandana(*command, spec, "--data", data)
        assert ended.exit_code == 0, ended.output
        outputs.append(ended.output)
    return spec, rows, data, outputs


def _texts(data, outputs):
    """Everything that was written but the store of results: whole files, and what is packed inside PDFs."""
    yield from (("output", text.encode()) for text in outputs)
    for path in sorted(data.rglob("*")):
        if not path.is_file() or (data / "results") in path.parents or path.stat().st_size == 0:
            continue
        content = path.read_bytes()
        yield str(path.relative_to(data)), content
        if content.startswith(b"%PDF"):
            for packed in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.S):
                try:
                    yield f"{path.name}, unpacked", zlib.decompress(packed)
                except zlib.error:
                    continue


def _members(data):
    """Everything that is packed in the store of results and in evidence."""
    for path in sorted(data.rglob("*.npz")):
        yield str(path.relative_to(data)), path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            yield from ((f"{path.name}, {name}", archive.read(name)) for name in archive.namelist())


def _digits(values, kept=7):
    """How a number would be written, to so many digits; and as the bytes of a float."""
    found = set()
    for value in values:
        text = f"{value:.15g}"
        if len(text.replace(".", "").lstrip("0")) >= kept + 1:
            found.add(text[: text.index(".") + 1 + kept].encode() if "." in text else text.encode())
            found |= {np.float64(value).tobytes(), np.float64(value).byteswap().tobytes()}
    return found


def _found_in(content, secrets):
    """Which of many secrets, of eight bytes or more, stand in a content: windows of eight bytes are compared at once."""
    heads = np.unique([int.from_bytes(secret[:8], "little") for secret in secrets]).astype(np.uint64)
    found = set()
    for start in range(0, len(content), 1 << 20):
        part = np.frombuffer(content[start : start + (1 << 20) + 7], dtype=np.uint8)
        if len(part) >= 8:
            windows = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(part, 8)).view("<u8")[:, 0]
            found |= set(heads[np.isin(heads, windows)].tolist())
    return [secret for secret in secrets if int.from_bytes(secret[:8], "little") in found and secret in content]


def _regrets(spec, data):
    store = Store(data / "results")
    found = []
    for cell in Plan.of(pinned(load_spec(spec), data)).played:
        curves = np.concatenate([store.load(BENCHMARK, block.key)[0]["regret"] for block in cell.blocks()])
        found += curves.mean(axis=0)[-20:].tolist() + curves[:, -1].tolist()
    return [value for value in found if value % 1 > 1e-4]


def test_no_value_of_the_file_is_written_anywhere(ran):
    _, rows, data, outputs = ran
    secrets = _digits(rows[:500].ravel()) | _digits(rows.mean(axis=0)) | _digits(rows[:500].mean(axis=0))
    assert len(secrets) > 2500
    seen = 0
    for where, content in _texts(data, outputs):
        seen += 1
        leaked = _found_in(content, secrets)
        assert not leaked, (where, leaked[:3])
    assert seen > 20


def test_no_plain_hash_of_the_file_and_nothing_of_the_secret_is_written_anywhere(ran):
    spec, _, data, outputs = ran
    content, secret = (spec.parent / "people.csv").read_bytes(), (data / SECRET).read_bytes()
    hashes = [
        hashlib.new(name, form).hexdigest()
        for name in ("sha256", "sha1", "md5")
        for form in (content, content.hex().encode())
    ]
    told = [found[:12].encode() for found in hashes] + [secret, secret.hex().encode(), base64.b64encode(secret)[:40]]
    for where, written in (*_texts(data, outputs), *((path.name, path.read_bytes()) for path in _results(data))):
        assert where == SECRET or not [found for found in told if found in written], where


def _results(data):
    return (path for path in (data / "results").rglob("*.npz"))


def test_the_search_finds_a_planted_value(ran):
    secret = ran[1][3, 1]
    for content in (f"reward {secret!r} of user 3".encode(), np.array([0.5, secret]).tobytes()):
        assert any(found in content for found in _digits([secret]))
        assert _found_in(content, _digits([secret, 0.123456789012]))
        assert _found_in(b"x" * ((1 << 20) - 12) + content, _digits([secret])), "also where two parts meet"
        assert not _found_in(content, _digits([0.123456789012]))


def test_regret_is_shown_only_where_it_is_declared_public(ran):
    spec, _, data, outputs = ran
    is_public = bool(load_spec(spec).environment[0].public)
    secrets = _digits(_regrets(spec, data))
    assert len(secrets) > 30
    found = {where for where, content in _texts(data, outputs) if any(secret in content for secret in secrets)}
    assert bool(found) == is_public, found
    report = json.loads((data / "suites" / "small" / "report.json").read_text())
    assert [cell["final_mean"] is None for cell in report["benchmark"]["cells"]] == [not is_public] * 5
    assert bool(report["benchmark"]["comparisons"]) == is_public
    assert all(environment["means"] == [] for environment in report["environments"])
    assert (report["benchmark"]["withheld"] is None) == is_public


def test_names_are_left_out_of_everything_if_that_is_asked_for(ran):
    spec, _, data, outputs = ran
    searched = [*_texts(data, outputs), *_members(data)]
    found = {where for where, content in searched if USER.encode() in content or HOST.encode() in content}
    if not load_spec(spec).environment[0].public:
        assert found == set()
        return
    for place in ("suites/small/report.html", "suites/small/report.json", "mlflow/mlflow.db", ", description.npy"):
        assert any(place in where for where in found), f"else the search of {place} could not fail"


def test_an_audit_of_a_private_table_replays_rewards_that_are_drawn(ran):
    table = cells_of(load_spec(ran[0]))[1].environment.audit_table()
    assert table.rewards.shape == (16, 2)
    assert set(np.unique(table.rewards)) == {0.0, 1.0}


def test_a_malformed_row_is_told_without_its_value(bandana, tmp_path):
    (tmp_path / "people.csv").write_text("stay,go\n0.25,0.75\n0.5,7.654321\n")
    from small_spec import SMALL

    tree = yaml.safe_load(SMALL) | {"environment": {"kind": "table", "path": "people.csv"}}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(tree))
    for command in (["check"], ["run", "--debug"]):
        done = bandana(*command, tmp_path / "spec.yaml", "--data", tmp_path / "data")
        assert done.exit_code != 0
        said = done.output + "".join(traceback.format_exception(done.exception))  # with --debug, Python prints it
        assert "people.csv:3: the reward of action 'go' must be a number in the declared range" in said
        assert "7.654321" not in said
