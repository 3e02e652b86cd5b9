"""The adapter to private parts of MLflow, all that the product uses of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from sqlalchemy import Engine

ARTIFACT_ROOT = "_MLFLOW_SERVER_ARTIFACT_ROOT"
"""Environment variable: where a store puts files of experiments that name no place; MLflow's server sets it for itself."""


def server_environment() -> dict[str, str]:
    """Environment variables that `mlflow server` sets for the process that serves its application."""
    return {"_MLFLOW_SGI_NAME": "uvicorn", "_MLFLOW_SERVER_BOOT_ID": uuid.uuid4().hex, "_MLFLOW_IN_JOB_EXECUTOR": "false"}


def create_tables(engine: Engine) -> None:
    """Lays out all tables of a tracking store, as a store does on a database without tables; logs "Creating tables"."""
    from mlflow.store.db import utils

    initialize: Any = utils._initialize_tables
    initialize(engine)


def delete_for_good(client: MlflowClient, run_id: str) -> None:
    """Deletes the rows of a run that is marked as deleted, as `mlflow gc` does; the client's store must be a database."""
    private: Any = client
    private._tracking_client.store._hard_delete_run(run_id)


def replace_app(name: str, place: str) -> None:
    """Makes `mlflow server --app-name NAME` of this process serve the application at `place`, which is MODULE:FACTORY."""
    from mlflow import server

    find: Callable[[str], str] = server._find_app

    def find_ours(wanted: str) -> str:
        return place if wanted == name else find(wanted)

    setattr(server, find.__name__, find_ours)
