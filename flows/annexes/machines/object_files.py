"""Finished files in a bucket of an object store that speaks S3, with copies on this machine.

Every write is conditional (`If-None-Match: *`): of two machines that finish the same work, the first one's bytes stay, and
both read them. An object appears whole or not at all, so that a machine may be killed at any moment.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from bandana import layers
from bandana.flows.folder.settings import DataFolder, data_root
from bandana.flows.folder.shared import ADDRESS
from bandana.flows.folder.store import Files, write_whole
from bandana.flows.own.data import SECRET
from bandana.flows.servers.loopback import is_loopback
from bandana.flows.texts.mistakes import SpecError

_FRESH, _SHARE = 2.0, 0.05
"""Seconds for which a listing answers whether a file is there, and the most of its time that a worker spends on listings."""
_PATIENCE = timedelta(seconds=60)
"""Time in which a request that found no server is tried again."""
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_TRIAL = "first-stays"
"""Object by which a machine tries whether the server keeps what was written first."""
_SECRET_BYTES = 32


@cache
def files_at(address: str) -> ObjectFiles:
    """The files at an address, once in each process.

    Raises:
      SpecError: the address names no bucket.
      MissingExtra: obstore is not installed.
    """
    return ObjectFiles(address)


class ObjectFiles(Files):
    """Finished files in a bucket.

    A file that was read once is kept in the folder of results on this machine, and read there while the bucket has it.
    Endpoint and credentials come from the environment: AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY, and what else obstore reads.

    Args:
      address: `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__(DataFolder(data_root(address)).results)
        self._known: dict[str, set[str]] = {}
        self._fresh_until: dict[str, float] = {}
        bucket, _, prefix = address.removeprefix("s3://").partition("/")
        if not _BUCKET.fullmatch(bucket):
            raise SpecError(
                f"--data: {address}: {bucket!r} is no name of a bucket: 3 to 63 lower-case letters, digits, '.' and '-', "
                "between letters or digits"
            )
        with layers.explained():
            from obstore.store import S3Store
        self._endpoint = next((v for n in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") if (v := os.environ.get(n))), None)
        is_here = is_loopback(urlsplit(self._endpoint or "").hostname)
        self._client = S3Store(
            bucket, prefix=prefix or None, client_options={"allow_http": True} if is_here else None, endpoint=self._endpoint,
            retry_config={"max_retries": 20, "retry_timeout": _PATIENCE},
        )  # fmt: skip

    def __reduce__(self) -> tuple[Callable[[str], ObjectFiles], tuple[str]]:
        """A worker opens the address on its own machine, by its own environment."""
        return files_at, (self._address,)

    def sizes(self, kind: str) -> dict[str, int]:
        """Bytes of every file of a kind, by its name without the kind."""
        began = time.monotonic()
        with self._explained():
            listed = [(str(one["path"]), int(one["size"])) for page in self._client.list(kind) for one in page]
        sizes = {path.rpartition("/")[2]: size for path, size in listed}
        self._known[kind] = set(sizes)
        self._fresh_until[kind] = (now := time.monotonic()) + max(_FRESH, (now - began) / _SHARE)
        return sizes

    def has(self, name: str) -> bool:
        """True if the file is there; one that another machine wrote since the last listing is overlooked."""
        kind, _, file = name.partition("/")
        if file not in self._known.get(kind, ()) and time.monotonic() > self._fresh_until.get(kind, 0.0):
            self.sizes(kind)
        return file in self._known.get(kind, ())

    def fetch(self, name: str) -> Path:
        """Place of the file on this machine, brought here unless it was; nothing lies there if nobody wrote it."""
        place = self.folder / name
        if not (place.exists() and self.has(name)):
            self._bring(name)
        return place

    def put_first(self, name: str, content: bytes, is_whole: Callable[[Path], bool]) -> bool:
        """Writes the file and returns whether it did: the first whole one stays, and `fetch` gives it."""
        place = self.folder / name
        if not self._create(name, content):
            self._bring(name)
            if is_whole(place):
                return False
            with self._explained():
                self._client.put(name, content, use_multipart=False)
        self._copy(name, content)
        return True

    def join(self, root: Path) -> None:
        """Makes a folder this machine's part of the store, with the secret by which all machines know private files.

        Raises:
          OSError: there is no such bucket, the credentials do not allow to write, the server does not answer, or it would
            let a later write replace an earlier one.
        """
        if self._create(_TRIAL, b"") and self._create(_TRIAL, b""):
            raise OSError(
                f"{self._address}: the server ignores If-None-Match, so that one machine could replace another's results"
            )
        write_whole(root / ADDRESS, self._address.encode())
        self.folder.mkdir(exist_ok=True)
        mine = root / SECRET
        self._create(SECRET, mine.read_bytes() if mine.exists() else secrets.token_bytes(_SECRET_BYTES))
        write_whole(mine, self._read(SECRET) or b"")

    def _create(self, name: str, content: bytes) -> bool:
        """Writes an object where there is none; False where there is one."""
        from obstore.exceptions import AlreadyExistsError

        try:
            with self._explained():
                self._client.put(name, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        return True

    def _read(self, name: str) -> bytes | None:
        try:
            with self._explained():
                return bytes(self._client.get(name).bytes())
        except FileNotFoundError:
            return None

    def _bring(self, name: str) -> None:
        if (content := self._read(name)) is None:
            (self.folder / name).unlink(missing_ok=True)
        else:
            self._copy(name, content)

    def _copy(self, name: str, content: bytes) -> None:
        write_whole(self.folder / name, content)
        kind, _, file = name.partition("/")
        self._known.setdefault(kind, set()).add(file)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the library as the operating system's, in one line that says what to do.

        Raises:
          FileNotFoundError: there is no such object; without a bucket, PermissionError, which is not tried again either.
          ConnectionError: the server did not answer in time; the same work may succeed later.
        """
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            yield
        except AlreadyExistsError:
            raise
        except (BaseError, FileNotFoundError) as error:
            words, at = " ".join(str(error).split("Debug source:")[0].split()), self._endpoint or "AWS"
            if "NoSuchBucket" in words:
                raise PermissionError(f"{self._address}: there is no such bucket at {at}: create it first") from None
            if "status code: 404" in words:
                raise FileNotFoundError(words) from None
            if "169.254." in words or re.search("status code: 40[013]", words):
                what = "no credentials" if "169.254." in words else "wrong credentials, or no right to write"
                advice = "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION"
                raise PermissionError(f"{self._address}: {what} at {at}: {advice} ({_shortened(words)})") from None
            advice = "finished work is kept; run the same command again to continue"
            raise ConnectionError(f"{self._address}: {at} does not answer as S3: {advice} ({_shortened(words)})") from None


def _shortened(words: str) -> str:
    code = re.search("<Code>(.*?)</Code>", words)
    return code[1] if code else words[:240]
