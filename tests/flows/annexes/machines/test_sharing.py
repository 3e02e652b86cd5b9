"""Workers that only meet in a store: together they do all of a suite, and end with the bytes of one folder."""

import json
from pathlib import Path

import pytest
import yaml
from runs import killable

from bandana.audits.contents import numbers_sha256
from bandana.flows.annexes.machines import sharing
from bandana.flows.annexes.machines.shard_flow import shard_flow
from bandana.flows.annexes.machines.sharing import Shard, State
from bandana.flows.cells.audits import AUDIT
from bandana.flows.cells.play import BENCHMARK
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.mistakes import SpecError
from benchmarks import object_kills

_KEYS = [f"{i:032x}-{i:032x}" for i in range(200)]


def test_a_shard_begins_with_its_own_part_and_goes_on_with_what_others_reach_last():
    assert Shard(1, 1).ordered(_KEYS) == _KEYS
    assert Shard(2, 2).ordered(list("abcdef")) == ["b", "d", "f", "e", "c", "a"]
    orders = [Shard(i, 4).ordered(_KEYS) for i in range(1, 5)]
    assert all(sorted(order) == _KEYS for order in orders), "each would finish alone"
    assert [order[:50] for order in orders] == [_KEYS[i::4] for i in range(4)]
    for order in orders:
        rows = [_KEYS.index(key) // 4 for key in order[50:]]
        assert rows == sorted(rows, reverse=True)
    shared = [[key for key in order if key in {*orders[2][:50], *orders[3][:50]}] for order in orders[:2]]
    assert shared[0] != shared[1], "they help in different orders"


@pytest.mark.parametrize("text", ["", "2", "0/4", "5/4", "1/0", "-1/4", "1/2/3", "1.0/4", "a/b"])
def test_a_shard_that_is_none_is_refused(text):
    with pytest.raises(SpecError, match="--shard: must be I/N, such as 2/4"):
        Shard.parse(text)


def test_a_shard_is_read():
    assert Shard.parse(" 2/4 ") == Shard(2, 4)
    assert (Shard.parse("3/3").number, Shard.parse("3/3").of) == (3, 3)


def _numbers(store):
    """Hash of the numbers of every result."""
    return {(kind, key): numbers_sha256(store.path(kind, key)) for kind in (BENCHMARK, AUDIT) for key in store.sizes(kind)}


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """A suite, and the numbers that one worker alone leaves in a folder."""
    folder = tmp_path_factory.mktemp("suite")
    spec = killable(folder, horizon=500, replications=8, block_size=1)
    data = DataFolder.open(folder / "data")
    plan = Plan.of(load_spec(spec), data.root)
    done = sharing.work(plan, data, Shard(1, 1), 1, is_audited=True)
    numbers = _numbers(Store(data.results))
    assert len(numbers) == done["blocks"].here + done["audits"].here == done["blocks"].total + done["audits"].total > 20
    return spec, plan, numbers


def test_two_machines_share_a_suite_and_end_with_the_bytes_of_one_folder(suite, bucket, machine):
    _, plan, numbers = suite
    address, blocks = f"s3://{bucket}/shared", {block.key: block for block in plan.blocks()}
    machine("one")
    store = Store(DataFolder.open(address).results)
    for key in Shard(1, 2).ordered([*blocks])[:5]:  # and then it is killed
        assert sharing._play(store, (blocks[key], key)) is State.HERE
    begun = next(key for key in blocks if not store.has(BENCHMARK, key))
    assert store.keep("begun", begun, b"", lambda _: True), "it was at this when it was killed"
    machine("two")
    assert sharing._play(Store(DataFolder.open(address).results), (blocks[begun], begun), is_idle=False) is State.BEGUN
    done = sharing.work(plan, DataFolder.open(address), Shard(2, 2), 1, is_audited=True)
    assert done == {"blocks": (len(blocks) - 5, len(blocks)), "audits": (1, 1)}
    machine("third")
    assert _numbers(Store(DataFolder.open(address).results)) == numbers


def test_what_another_worker_finished_meanwhile_is_not_done_again(suite, bucket, machine, monkeypatch):
    _, plan, _ = suite
    address, block = f"s3://{bucket}/shared", plan.blocks()[0]
    machine("one")
    early = Store(DataFolder.open(address).results)
    assert early.sizes(BENCHMARK) == {}
    machine("two")
    assert sharing._play(Store(DataFolder.open(address).results), (block, block.key)) is State.HERE
    monkeypatch.setattr(sharing.steps, "play", lambda *_: pytest.fail("it is there"))
    assert not early.has(BENCHMARK, block.key), "a listing of a moment ago does not show it"
    assert sharing._play(early, (block, block.key)) is State.ELSEWHERE


def test_the_command_and_the_flow_of_work_pools_go_on_from_each_other(suite, bucket, machine, bandana, prefect_server):
    spec, plan, numbers = suite
    address = f"s3://{bucket}/pool"
    machine("command")
    ended = bandana("work", spec, "--workers", "1", "--shard", "1/2", "--json", "--data", address)
    assert ended.exit_code == 0, ended.output
    n_blocks = len(plan.blocks())
    assert json.loads(ended.stdout) == {"blocks": {"here": n_blocks, "total": n_blocks}, "audits": {"here": 0, "total": 0}}
    machine("flow")
    done = shard_flow(spec.read_text(), address, "2/2", audit=True, workers=1)
    assert done == {"blocks": {"here": 0, "total": n_blocks}, "audits": {"here": 1, "total": 1}}
    assert _numbers(Store(DataFolder.open(address).results)) == numbers
    again = bandana("work", spec, "--audit", "--workers", "1", "--data", address)
    assert again.stdout.splitlines() == [
        f"blocks: 0 computed here, all {n_blocks} are in the store", "audits: 0 computed here, all 1 are in the store",
    ]  # fmt: skip


def test_deployments_of_shards_name_the_flow_and_the_pools():
    from prefect.flows import load_flow_from_entrypoint

    tree = yaml.safe_load((Path(__file__).parents[4] / "deploy" / "prefect.shards.yaml").read_text())
    pools = [one["work_pool"]["name"] for one in tree["deployments"]]
    assert pools == ["bandana", "bandana-docker", "bandana-kubernetes"]
    for deployment in tree["deployments"]:
        assert load_flow_from_entrypoint(deployment["entrypoint"]).name == shard_flow.name == "shard"


@pytest.mark.nightly
def test_workers_that_are_killed_leave_a_suite_that_ends_with_the_same_bytes(capsys):
    """In `make test`: a worker that stops half way, in this process. More kills: `python -m benchmarks.object_kills`."""
    assert object_kills.main(3) == 0
    assert "3 workers killed; 0 suites" in capsys.readouterr().out
