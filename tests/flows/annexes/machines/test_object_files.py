"""Results in a bucket: the first write stays, every machine reads the same bytes, and each failure has a clear name."""

import pickle
import sys
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from bandana.flows.annexes.machines import object_files
from bandana.flows.annexes.machines.object_files import ObjectFiles
from bandana.flows.folder.settings import DataFolder, data_root
from bandana.flows.folder.shared import ADDRESS
from bandana.flows.folder.store import Store
from bandana.flows.own.data import SECRET
from bandana.flows.running.executors import is_infrastructure_fault
from bandana.flows.texts.mistakes import BookError, SpecError
from bandana.layers import MissingExtra


def _never(_):
    raise AssertionError("nothing was there before")


@pytest.fixture(params=["folder", "bucket"])
def open_store(request, tmp_path, machine):
    """Opens the store, as a process on a machine of that name does: all of a folder, or of a bucket, are one store."""
    if request.param == "folder":
        return lambda name: Store(DataFolder.open(tmp_path / "shared").results)
    bucket = request.getfixturevalue("bucket")

    def open_on(name):
        machine(name)
        return Store(DataFolder.open(f"s3://{bucket}/some/suite").results)

    return open_on


def test_what_one_machine_saves_another_loads(open_store):
    one, other = open_store("one"), open_store("other")
    assert one.load("kind", "key") is None
    assert not one.has("kind", "key")
    assert not one.path("kind", "key").exists()
    path = one.save("kind", "key", {"x": np.arange(5.0)}, {"name": "é"})
    arrays, description = other.load("kind", "key")
    np.testing.assert_array_equal(arrays["x"], np.arange(5.0))
    assert description == {"name": "é"}
    assert other.has("kind", "key")
    assert other.path("kind", "key").read_bytes() == path.read_bytes()
    assert other.sizes("kind") == {"key": path.stat().st_size}
    assert other.sizes("other-kind") == {}


def test_the_first_result_of_two_machines_stays_and_a_damaged_one_is_replaced(open_store):
    one, other = open_store("one"), open_store("other")
    one.save("kind", "key", {"x": np.arange(5.0)}, {"made": "sooner"})
    place = other.save("kind", "key", {"x": np.arange(5.0)}, {"made": "later"})
    assert one.describe("kind", "key") == other.describe("kind", "key") == {"made": "sooner"}
    assert one.path("kind", "key").read_bytes() == place.read_bytes()
    cut = open_store("third")
    cut.keep("kind", "cut", place.read_bytes()[:100], _never)
    other = open_store("fourth")
    assert other.load("kind", "cut") is None
    other.save("kind", "cut", {"x": np.arange(3.0)}, {"made": "again"})
    assert other.describe("kind", "cut") == open_store("fifth").describe("kind", "cut") == {"made": "again"}


def test_of_many_writers_at_once_one_is_first_and_all_read_its_bytes(bucket, machine):
    machines = [(machine(f"m{i}"), ObjectFiles(f"s3://{bucket}/race"))[1] for i in range(6)]
    for turn in range(5):
        start, won = threading.Barrier(len(machines)), []

        def write(i, name=f"kind/{turn}.npz", start=start, won=won):
            start.wait()
            if machines[i].put_first(name, bytes([i]) * 1000, lambda path: path.stat().st_size == 1000):
                won.append(i)

        threads = [threading.Thread(target=write, args=(i,)) for i in range(len(machines))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert {files.fetch(f"kind/{turn}.npz").read_bytes() for files in machines} == {bytes([won[0]]) * 1000}


def test_a_store_that_is_sent_to_another_machine_uses_the_folder_there(bucket, machine):
    first = machine("first")
    sent = pickle.dumps(Store(DataFolder.open(f"s3://{bucket}").results))
    second = machine("second")
    path = pickle.loads(sent).save("kind", "key", {}, {})
    assert path == second / "s3" / bucket / "results" / "kind" / "key.npz"
    assert not list(first.rglob("*.npz"))


def test_a_copy_counts_only_while_the_bucket_has_its_object(bucket, machine):
    machine("one")
    files = ObjectFiles(f"s3://{bucket}/x")
    files.put_first("kind/a.npz", b"content", _never)
    files._client.delete("kind/a.npz")
    machine("one")
    files = ObjectFiles(f"s3://{bucket}/x")
    assert not files.has("kind/a.npz")
    assert not files.fetch("kind/a.npz").exists()
    assert files.put_first("kind/a.npz", b"content", _never)


def test_a_listing_of_more_than_a_page_is_whole(bucket, machine, monkeypatch):
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "3")
    machine("one")
    files = ObjectFiles(f"s3://{bucket}/x")
    for i in range(8):
        files._client.put(f"kind/{i}.npz", b"1")
    assert [len(page) for page in files._client.list("kind", chunk_size=3)] == [3, 3, 2]
    assert len(files.sizes("kind")) == 8
    assert files.has("kind/7.npz")


def test_all_machines_know_private_files_by_one_secret(bucket, machine):
    one = machine("one") / "s3" / bucket
    DataFolder.open(f"s3://{bucket}")
    two = machine("two") / "s3" / bucket
    DataFolder.open(f"s3://{bucket}")
    assert (one / SECRET).read_bytes() == (two / SECRET).read_bytes()
    assert len((one / SECRET).read_bytes()) == 32
    assert (one / SECRET).stat().st_mode & 0o077 == 0
    assert (one / ADDRESS).read_text() == f"s3://{bucket}"


@pytest.mark.parametrize("named", ["s3://lab/suite", "s3:/lab/suite", "s3://lab/suite/"])
def test_an_address_stands_where_a_folder_does(named, tmp_path, monkeypatch):
    monkeypatch.setenv("BANDANA_LOCAL", str(tmp_path))
    assert data_root(named) == tmp_path / "s3" / "lab" / "suite"
    monkeypatch.setenv("BANDANA_DATA", named)
    assert data_root() == tmp_path / "s3" / "lab" / "suite"


@pytest.mark.parametrize(
    "named",
    ["s3://", "s3://lab/../other", "s3://lab//x", "s3://lab/.x", "s3://lab/a b", "s3://lab/x\n", "gs://lab", "http://h/x"],
)
def test_other_addresses_are_refused(named):
    with pytest.raises(SpecError, match=r"--data: .* must be a folder or s3://BUCKET/PREFIX"):
        data_root(named)


@pytest.mark.parametrize("name", ["ab", "Lab", "lab_1", "lab-", "x" * 64])
def test_a_name_that_no_bucket_can_have_is_refused(name, machine):
    machine("one")
    with pytest.raises(SpecError, match="is no name of a bucket: 3 to 63 lower-case letters"):
        ObjectFiles(f"s3://{name}/x")


def test_without_the_library_the_packages_are_named(monkeypatch, machine):
    machine("one")
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MissingExtra, match=r"pip install 'bandana-dp\[objects\]'"):
        ObjectFiles("s3://lab")


class _Answers(BaseHTTPRequestHandler):
    """Answers every request with one status, as a server does that refuses, or that ignores conditions."""

    def _answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.server.status)
        self.send_header("ETag", '"1"')
        body = b"<Error><Code>InvalidAccessKeyId</Code></Error>" if self.server.status != 200 else b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = _answer  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.fixture
def answering(monkeypatch, machine):
    """A server that answers with one status; the environment names it."""
    machine("one")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "wrong")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")

    def answer(status):
        server.status = status

    yield answer
    server.shutdown()
    server.server_close()


def test_wrong_credentials_are_told_and_not_tried_again(answering):
    answering(403)
    with pytest.raises(
        PermissionError, match=r"s3://lab/x: wrong credentials, or no right to write at http.*InvalidAccessKeyId"
    ) as told:
        DataFolder.open("s3://lab/x")
    assert not is_infrastructure_fault(told.value)
    assert not list(data_root("s3://lab/x").iterdir())


def test_a_server_that_lets_a_later_write_win_is_refused(answering):
    answering(200)
    with pytest.raises(OSError, match="the server ignores If-None-Match"):
        DataFolder.open("s3://lab/x")


def test_a_missing_bucket_is_told(bucket, machine):
    machine("one")
    with pytest.raises(
        PermissionError, match=r"s3://no-such-bucket: there is no such bucket at http://127.0.0.1:.*create it first"
    ):
        DataFolder.open("s3://no-such-bucket")


def test_a_command_ends_with_one_line(bucket, machine, bandana, write_spec):
    machine("one")
    ended = bandana("work", write_spec(), "--data", "s3://no-such-bucket")
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1), ended.output
    assert ended.stderr.startswith("error: --data: the folder cannot be used: s3://no-such-bucket: there is no such bucket")


def test_a_server_that_goes_is_waited_for_and_nothing_is_lost(bucket, server, machine, monkeypatch):
    machine("one")
    store = Store(DataFolder.open(f"s3://{bucket}").results)
    store.save("kind", "before", {}, {})
    server.stop()
    back = threading.Timer(0.5, server.start)
    back.start()
    try:
        store.save("kind", "meanwhile", {}, {"kept": True})  # tried again until the server is back
    finally:
        back.join()
    assert store.sizes("kind").keys() == {"before", "meanwhile"}
    monkeypatch.setattr(object_files, "_PATIENCE", timedelta(seconds=0.2))
    machine("two")
    impatient = Store(DataFolder.open(f"s3://{bucket}").results)
    server.stop()
    try:
        with pytest.raises(
            ConnectionError, match="does not answer as S3: finished work is kept; run the same command"
        ) as told:
            impatient.save("kind", "late", {}, {})
        assert is_infrastructure_fault(told.value), "an engine may try the task again"
    finally:
        server.start()
    assert impatient.load("kind", "late") is None
    assert impatient.load("kind", "meanwhile") == ({}, {"kept": True})


def test_a_budget_book_needs_one_disk_for_all(bucket, machine, tmp_path):
    open_book = pytest.importorskip("bandana.flows.annexes.books.bookkeeping.book").BudgetBook
    machine("one")
    root = DataFolder.open(f"s3://{bucket}").root
    with pytest.raises(BookError, match="trial: the data folder's results lie in a store that machines share"):
        open_book(str(root / "books" / "trial.sqlite"))
    assert open_book(str(tmp_path / "trial.sqlite")).entries() == []


def test_prune_needs_one_disk_for_all(bucket, machine, bandana):
    pytest.importorskip("bandana.flows.annexes.operations")
    machine("one")
    DataFolder.open(f"s3://{bucket}").prepare()
    ended = bandana("prune", "--data", f"s3://{bucket}")
    assert ended.exit_code == 2
    assert "--data: prune needs a folder" in ended.stderr
