"""A user's file: known by its content, a private one to nobody without the secret, and never played under another key."""

import hashlib
import hmac
import os
import pickle
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import yaml

from bandana.flows.cells import replicates
from bandana.flows.cells.audits import audit_cell, audit_key
from bandana.flows.cells.play import BENCHMARK, benchmark_block
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.own import data as own_data
from bandana.flows.own.data import SECRET, pinned
from bandana.flows.plan.keys import block_facts, identity_of
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.mistakes import SpecError

ONE, OTHER = b"a,b\n" + b"0,1\n" * 600, b"a,b\n" + b"1,0\n" * 600
THEN = 1_700_000_000_000_000_000
PUBLIC = {"public": ["values"]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.csv"


@pytest.fixture
def root(tmp_path):
    return DataFolder.open(tmp_path / "data").root


@pytest.fixture
def load(write_spec, path):
    """The spec on a file with the given rows, of the same size and time whatever they are."""

    def build(rows, **more):
        write(path, rows)
        return load_spec(write_spec(environment={"kind": "table", "path": path.name, **more}))

    return build


def write(path, rows):
    path.write_bytes(rows)
    os.utime(path, ns=(THEN, THEN))


def block_of(spec, root):
    return cells_of(pinned(spec, root))[1].blocks()[0]


def forget():
    """What a worker is like, which has read nothing yet."""
    own_data._HELD.clear()


@pytest.mark.parametrize("more", [{}, PUBLIC], ids=["private", "public"])
def test_two_files_of_equal_size_and_time_share_nothing(load, root, more):
    store, regrets, keys = Store(root / "results"), [], []
    for rows in (ONE, OTHER, ONE):
        block = block_of(load(rows, **more), root)
        arrays, _ = benchmark_block(block, store)
        np.testing.assert_array_equal(block.cell.environment.means, [float(rows == OTHER), float(rows == ONE)])
        regrets.append(arrays["regret"])
        keys.append((block.key, block.cell.key, audit_key(block.cell)))
    assert keys[0] == keys[2]
    assert not set(keys[0]) & set(keys[1])
    assert not np.array_equal(regrets[0], regrets[1])
    assert len(store.sizes(BENCHMARK)) == 2


def test_the_same_content_elsewhere_or_later_shares_results(load, root, write_spec, path):
    first = block_of(load(ONE), root)
    os.utime(path)
    assert block_of(load_spec(write_spec(environment={"kind": "table", "path": path.name})), root).key == first.key
    shutil.copy(path, path.with_name("copy.csv"))
    copy = load_spec(write_spec(environment={"kind": "table", "path": "copy.csv", "label": "people.csv"}))
    assert block_of(copy, root).key == first.key


def test_a_private_file_is_known_by_an_hmac_with_the_folders_secret(load, root):
    facts = identity_of(block_of(load(ONE), root).cell)["environment"]
    secret = (root / SECRET).read_bytes()
    assert len(secret) == 32
    assert (root / SECRET).stat().st_mode & 0o777 == 0o600
    assert facts["content"] == hmac.new(secret, ONE, hashlib.sha256).hexdigest()
    assert facts["path"] == "private"


def test_another_data_folder_has_other_keys_and_the_same_numbers(load, root, tmp_path):
    spec, other = load(ONE).model_copy(update={"noise": "reproducible"}), DataFolder.open(tmp_path / "other").root
    here, there = block_of(spec, root), block_of(spec, other)
    assert here.key != there.key
    assert here.noise_seed.spawn_key == there.noise_seed.spawn_key
    arrays = [benchmark_block(block, Store(tmp_path / name))[0]["regret"] for block, name in ((here, "x"), (there, "y"))]
    np.testing.assert_array_equal(*arrays)
    shutil.copytree(root, tmp_path / "copy")
    assert block_of(spec, tmp_path / "copy").key == here.key, "a copied folder keeps its results"


def test_no_key_is_made_of_a_plain_hash_of_private_rows(load, root):
    """Whoever knows all rows but one tries out that one on what is shown: no hash that needs no secret stands in a key."""
    block = block_of(load(ONE), root)
    shown = repr((block_facts(block), block.key, block.cell.key, audit_key(block.cell), block.cell.environment.item))
    rows = ONE.split(b"\n", 1)[1]
    table = np.array([line.split(b",") for line in rows.split()], dtype=float)
    for content in (ONE, ONE.hex().encode(), b'"' + ONE.hex().encode() + b'"', rows, table.tobytes()):
        for name in ("sha256", "sha1", "md5", "sha512", "blake2b"):
            assert hashlib.new(name, content).hexdigest()[:12] not in shown
    other = identity_of(cells_of(pinned(load(ONE), root.parent / "other"))[1])["environment"]
    assert other["content"] != block_facts(block)["environment"]["content"], "no function of the file alone"


def test_without_a_data_folder_keys_are_of_this_process_alone(load, root):
    cell = cells_of(load(ONE))[1]
    assert cell.key == cells_of(load(ONE))[1].key != cells_of(load(OTHER))[1].key
    assert cell.blocks()[0].key != block_of(load(ONE), root).key


@pytest.mark.parametrize("more", [{}, PUBLIC], ids=["private", "public"])
def test_a_file_that_is_replaced_before_a_worker_reads_it_is_refused(load, root, path, more):
    block = block_of(load(ONE, **more), root)
    sent = pickle.dumps(block.cell.environment)
    write(path, OTHER)
    forget()
    with pytest.raises(SpecError, match=r"environment.path: .*people.csv changed while the run played it; run again"):
        pickle.loads(sent).stream(block.reward_seed)
    write(path, ONE)
    assert pickle.loads(sent).stream(block.reward_seed).n_users == 600
    assert b"0,1\n0,1" not in sent, "rows are not sent"


@pytest.mark.parametrize("more", [{}, PUBLIC], ids=["private", "public"])
def test_a_file_that_is_replaced_while_it_is_played_stores_nothing(load, root, path, more, monkeypatch):
    store, spec = Store(root / "results"), load(ONE, **more)
    block = block_of(spec, root)
    play = replicates.play

    def replaced(block):
        found = play(block)
        path.write_bytes(OTHER)
        return found

    monkeypatch.setattr(replicates, "play", replaced)
    with pytest.raises(SpecError, match=r"people.csv changed while the run played it; run again"):
        benchmark_block(block, store)
    assert store.sizes(BENCHMARK) == {}


def test_a_file_that_is_replaced_while_it_is_audited_stores_nothing(load, root, path, monkeypatch):
    from bandana.flows.cells import replays

    cell = cells_of(pinned(load(ONE), root))[1]
    monkeypatch.setattr(replays, "audit_of", lambda *_: path.write_bytes(OTHER))
    with pytest.raises(SpecError, match="changed while the run played it"):
        audit_cell(cell, Store(root / "results"))
    assert not (root / "results" / "audit").exists()


def test_a_file_that_was_only_touched_is_read_again_and_stored(load, root, path, monkeypatch):
    store, block, play = Store(root / "results"), block_of(load(ONE), root), replicates.play

    def touched(block):
        os.utime(path)
        return play(block)

    monkeypatch.setattr(replicates, "play", touched)
    benchmark_block(block, store)
    assert len(store.sizes(BENCHMARK)) == 1


def test_a_run_reads_the_file_once_and_all_its_steps_work_on_that_content(load, root, path, monkeypatch):
    reads = []
    read = own_data._read
    monkeypatch.setattr(own_data, "_read", lambda item: reads.append(item.path) or read(item))
    spec = pinned(load(ONE), root)
    benchmark_block(cells_of(spec)[1].blocks()[0], Store(root / "results"))
    write(path, OTHER)
    again = pinned(spec, root)
    assert again is spec
    assert cells_of(again)[1].blocks()[0].key == cells_of(spec)[1].blocks()[0].key
    assert environments_of(again)[0].means.tolist() == [0.0, 1.0], "what was keyed"
    assert len(reads) == 1
    assert pinned(load_spec(path.with_name("spec.yaml")), root).environment[0].pin != spec.environment[0].pin, "the next run"


def test_a_flow_hands_the_bound_spec_on(load, root):
    from bandana.flows.suites.suite import suite_flow

    plan = Plan.of(load(ONE)).bound(root)
    given = suite_flow.validate_parameters({"plan": plan, "spec_text": "", "data": str(root), "steps": []})["plan"]
    assert given is plan
    assert given.spec.environment[0].pin is not None
    assert suite_flow.serialize_parameters({"plan": plan})["plan"] == {"spec": plan.spec.model_dump(mode="json")}
    assert "pin" not in yaml.safe_dump(plan.spec.model_dump(mode="json"))


def test_runs_that_start_at_once_agree_on_one_secret(tmp_path, monkeypatch):
    """Each finds no secret, and makes one."""
    place, n = tmp_path / "data" / SECRET, 8
    together = threading.Barrier(n)
    make = own_data._make
    monkeypatch.setattr(own_data, "_make", lambda place: (together.wait(), make(place)))
    with ThreadPoolExecutor(n) as pool:
        found = list(pool.map(lambda _: own_data._secret_of(place, is_made=True), range(n)))
    assert len(set(found)) == 1
    assert [file.name for file in place.parent.iterdir()] == [SECRET], "nothing is left behind"


def test_a_file_system_without_links_has_one_secret_too(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError("no links here")

    monkeypatch.setattr(own_data.os, "link", refused)
    first = own_data._secret_of(tmp_path / SECRET, is_made=True)
    own_data._make(tmp_path / SECRET)
    assert own_data._secret_of(tmp_path / SECRET, is_made=True) == first
    assert (tmp_path / SECRET).stat().st_mode & 0o777 == 0o600


def test_a_damaged_or_missing_secret_is_told_and_never_replaced(load, root, monkeypatch):
    monkeypatch.setattr(own_data.time, "sleep", lambda _: None)
    block = block_of(load(ONE), root)
    (root / SECRET).write_bytes(b"short")
    with pytest.raises(SpecError, match="secret is damaged; restore it from a copy, or delete it"):
        pinned(load(ONE), root)
    (root / SECRET).unlink()
    forget()
    with pytest.raises(SpecError, match="secret cannot be read"):
        pickle.loads(pickle.dumps(block.cell.environment)).stream(block.reward_seed)
    assert not (root / SECRET).exists()


def test_public_files_need_no_secret(load, root):
    block_of(load(ONE, **PUBLIC), root)
    assert not (root / SECRET).exists()
