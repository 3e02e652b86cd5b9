"""Opening, restoring and moving live policies: what `bandana.live` offers."""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from bandana.flows.annexes.live import rules
from bandana.flows.annexes.live.charging import StreamBook
from bandana.flows.annexes.live.policy import Choice, ChoiceError, Policy, Privacy, World, kept
from bandana.flows.annexes.live.router import Deployed, Router, deploy, router_of
from bandana.flows.annexes.live.secrecy import KEY, Secrecy, new_key
from bandana.flows.annexes.live.store import FORMAT, POLICIES, STATES, TABLES, Store, StoreError
from bandana.flows.texts.mistakes import SpecError, shown

__all__ = ["Choice", "ChoiceError", "Policy", "Privacy", "StoreError", "World", "new_key", "open", "restore"]


def open(
    address: str | Path, *, key: str | None = None, world: World | None = None, **settings: object
) -> Policy:
    """Opens the policy at an address; it is created where there is none.

    Args:
      address: path of a SQLite file, or `postgresql://HOST/DATABASE#NAME`.
      key: encrypts contexts, rewards and exact sums at rest (`new_key`); None: BANDANA_LIVE_KEY, or no encryption.
      world: clock, ids, coins and noise; None: those of this machine, with secure noise. Audits and tests give their own.
      **settings: fields of `Router`, such as `algorithm`, `claim`, `n_actions`, `deadline` and `book`. They may be left out
        where the policy is there, and must else be those that it was created with.

    Returns:
      the policy; processes may open it side by side.

    Raises:
      SpecError: a setting is wrong or another one, or the algorithm cannot be deployed; the message has the reason.
      StoreError: the store or the key cannot be used.
      BookError: the book does not cover the claim; nobody can be asked for.
    """
    store, secrecy = Store(str(address)), Secrecy(key or os.environ.get(KEY))
    router = router_of(address, settings) if settings else None
    return open_router(router, store, secrecy, world or World())


def open_router(router: Router | None, store: Store, secrecy: Secrecy, world: World) -> Policy:
    """Opens the policy of checked settings; None: of those in the store."""
    if router is None:
        with store.session() as session:
            status = session.policy()
        if status is None:
            raise SpecError(f"open: {store.address} holds no policy yet: give its settings, such as algorithm and claim")
        router = router_of(store.address, json.loads(status["settings"]))
    policy = Policy(deploy(router), store, secrecy, world)
    create(policy.deployed, store, secrecy, world)
    return policy


def create(deployed: Deployed, store: Store, secrecy: Secrecy, world: World) -> None:
    """Creates the policy where it is not there, checks it where it is, and charges its book."""
    router = deployed.router
    store.create()
    with store.session() as session:
        status = session.status()
        if status is None:
            progress = rules.begin(deployed.algorithm, is_contextual=router.is_contextual, toss=world.toss)
            sensitive, public = kept(progress)
            identity, salt = secrets.token_hex(16), secrets.token_bytes(32)
            session.insert(
                POLICIES, format=FORMAT, identity=identity, settings=json.dumps(router.public()), asked=0, entered=0,
                releases=0, time=0.0, released=public,
            )  # fmt: skip
            session.insert(STATES, sensitive=secrecy.seal(sensitive, "state 0"), salt=salt)
            status = session.status()
        assert status is not None
        _check_same(router, status, session.state()["sensitive"], secrecy)
    if router.book is not None and status["book"] is None:
        # Charged first, and once for an identity: a process that dies in between charges nothing twice.
        StreamBook(router).charge(deployed, status["identity"])
        with store.session() as session:
            session.update(POLICIES, book=router.book)


def _check_same(router: Router, status: Mapping[str, object], sensitive: bytes, secrecy: Secrecy) -> None:
    """Refuses another format, other settings and another key."""
    if status["format"] != FORMAT:
        raise StoreError(f"store {router.store}: its format is {status['format']}, this release reads {FORMAT}")
    known = router_of(router.store, json.loads(str(status["settings"]))).public()  # with fields younger than the store
    for name, value in router.public().items():
        if known[name] != value:
            raise SpecError(
                f"{name}: the policy was created with {shown(known[name])}, got {shown(value)}; settings do not change"
            )
    secrecy.open(sensitive, f"state {status['entered']}")


def restore(address: str | Path, path: str | Path, *, last_release: int) -> None:
    """Puts a snapshot back where its store was lost.

    A snapshot that is older than a release would draw this release's noise again, over the same records: two noisy copies
    of one sum, whose difference and mean say more than the claim allows. So the last release that anybody may have seen must
    be the snapshot's last one. It stands in the log, in the metrics, and on the page of the service.

    Args:
      address: of the new store, which must hold no policy of this name.
      path: of the snapshot.
      last_release: number of the last release that the lost store made; 0: none.

    Raises:
      StoreError: the snapshot is older than a release, or cannot be read, or the store holds a policy; nothing was restored.
    """
    try:
        content = json.loads(Path(path).read_text("utf-8"), object_hook=_blob)
        rows, version = content["rows"], content["format"]
        (policy,) = rows[POLICIES.name]
        n_releases = policy["releases"]
        assert {*rows} == {table.name for table in TABLES}
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
        raise StoreError(f"snapshot {path}: cannot be read: {error or 'it is no snapshot'}") from error
    if version != FORMAT:
        raise StoreError(f"snapshot {path}: its format is {version}, this release reads {FORMAT}")
    if last_release != n_releases:
        raise StoreError(
            f"snapshot {path}: it was taken after release {n_releases}, and the last one is {last_release}: noise would be "
            "drawn twice over the same records; open a new policy, for new persons"
        )
    store = Store(str(address))
    if store.exists():
        raise StoreError(f"store {address}: it holds a policy; nothing was restored over it")
    store.create()
    policy["identity"] = secrets.token_hex(16)  # processes that hold the lost store find out
    with store.session() as session:
        session.put(rows)


def _blob(item: dict[str, object]) -> object:
    return base64.b64decode(str(item["base64"])) if {*item} == {"base64"} else item
