"""Users of an MLflow server with authentication, and what each may do with an experiment."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from bandana.flows.servers.login import authorization
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError
from bandana.flows.tracking.store.address import URI_VARIABLE, TrackingAddress
from bandana.flows.tracking.store.errors import TrackingError, advice

_SHORTEST = 12
_TIMEOUT = 60.0


class Accounts:
    """The users of the server that BANDANA_TRACKING_URI names, asked and changed as the user of this process.

    An administrator may do everything, an owner may share an experiment, and everybody may change the own password.

    Raises:
      SpecError: BANDANA_TRACKING_URI cannot be used, or names no server.
    """

    def __init__(self, data_dir: Path) -> None:
        self._address, self._root = TrackingAddress.chosen(data_dir), data_dir
        if self._address.kind != "http":
            raise SpecError(f"{URI_VARIABLE}: only an MLflow server has users: name one, such as http://127.0.0.1:5000")

    def keep(self, user: str, password: str) -> bool:
        """Creates a user, or changes the password of one; returns whether the user is new.

        Raises:
          SpecError: the password is too short.
          TrackingError: the server does not answer, or refuses.
        """
        if len(password) < _SHORTEST:
            raise SpecError(f"password: must have at least {_SHORTEST} characters, got {len(password)}")
        is_new = self._ask("GET", "2.0/mlflow/users/get", {"username": user}, is_absent_ok=True) is None
        login = {"username": user, "password": password}
        if is_new:
            self._ask("POST", "2.0/mlflow/users/create", login)
        else:
            # The own one is changed by who knows it, not by whoever finds an open session.
            mine = {"current_password": self._address.password or ""} if user == self._address.user else {}
            self._ask("PATCH", "2.0/mlflow/users/update-password", {**login, **mine})
        return is_new

    def remove(self, user: str) -> None:
        """Removes a user; the experiments and runs of that user stay.

        Raises:
          TrackingError: there is no such user, the server does not answer, or it refuses.
        """
        self._ask("DELETE", "2.0/mlflow/users/delete", {"username": user})

    def share(self, suite: str, user: str, level: str | None) -> None:
        """Lets a user READ, EDIT or MANAGE the experiment of a suite; None takes back what was granted.

        Raises:
          TrackingError: there is no such experiment or user, the server does not answer, or it refuses.
        """
        experiment = self._ask("GET", "2.0/mlflow/experiments/get-by-name", {"experiment_name": suite}, suite=suite)
        assert experiment is not None
        whose = {"username": user, "resource_type": "experiment", "resource_id": experiment["experiment"]["experiment_id"]}
        # A second grant is refused while the first one stands.
        self._ask("POST", "3.0/mlflow/users/permissions/revoke", whose, is_absent_ok=level is not None, suite=suite)
        if level is not None:
            self._ask("POST", "3.0/mlflow/users/permissions/grant", {**whose, "permission": level}, suite=suite)

    def _ask(
        self, method: str, path: str, fields: dict[str, str], *, is_absent_ok: bool = False, suite: str | None = None
    ) -> JsonObject | None:
        """The server's answer; None for what does not exist, where that is an answer (`is_absent_ok`)."""
        url, body = f"{self._address.uri}/api/{path}", None
        if method == "GET":
            url += f"?{urllib.parse.urlencode(fields)}"
        else:
            body = json.dumps(fields).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
        if self._address.user:
            request.add_header("Authorization", authorization(f"{self._address.user}:{self._address.password or ''}"))
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                return dict(json.loads(answer.read() or b"{}"))
        except urllib.error.HTTPError as error:
            if error.code == 404 and is_absent_ok:
                return None
            raise TrackingError(self._refusal(error, suite)) from None
        except (OSError, ValueError) as error:
            words = advice(error, self._address, self._root) if isinstance(error, OSError) else None
            raise TrackingError(words or f"{self._address.shown} is no MLflow server with users") from None

    def _refusal(self, error: urllib.error.HTTPError, suite: str | None) -> str:
        """Meaning of the server's error for the user of this process."""
        me, server = self._address.user or "a client without a user", f"the MLflow server {self._address.shown}"
        if error.code == 401:
            return f"{server} denies access to {me}: set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        if error.code == 403 and suite is not None:
            return f"{server} does not let {me} share the experiment {suite!r}: its owner or an administrator can"
        if error.code == 403:
            return f"{server} does not let {me} do this: only an administrator can"
        try:
            words = str(json.loads(error.read())["message"]).splitlines()[0]
        except (ValueError, KeyError, TypeError, IndexError):
            words = f"it answers {error.code}, as one without users does"
        return f"{server} refuses: {self._address.mask(words)[:200]}"
