"""MLflow's private parts are as `mlflow_private` uses them; these tests fail with a version in which they are not."""

import inspect

import pytest
from mlflow import MlflowClient, environment_variables, server
from mlflow.exceptions import MlflowException
from mlflow.server import constants
from sqlalchemy import create_engine, text
from sqlalchemy.pool import StaticPool

from bandana.flows.tracking.store import mlflow_private


def test_all_tables_are_created():
    engine = create_engine("sqlite://", poolclass=StaticPool)
    mlflow_private.create_tables(engine)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM runs")).scalar() == 0
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
    engine.dispose()


def test_a_deleted_run_is_gone_and_another_one_stays(tmp_path):
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.create_experiment("small", artifact_location=str(tmp_path / "files"))
    gone, kept = (client.create_run(experiment).info.run_id for _ in range(2))
    for run_id in (gone, kept):
        client.delete_run(run_id)
    mlflow_private.delete_for_good(client, gone)
    with pytest.raises(MlflowException, match=gone):
        client.get_run(gone)
    assert client.get_run(kept).info.lifecycle_stage == "deleted"


def test_the_environment_of_its_server_has_the_names_that_mlflow_reads():
    assert mlflow_private.ARTIFACT_ROOT == constants.ARTIFACT_ROOT_ENV_VAR
    for name in mlflow_private.server_environment():
        assert getattr(environment_variables, name).name == name


def test_one_name_of_an_application_is_replaced(monkeypatch):
    theirs = server._find_app
    monkeypatch.setattr(server, "_find_app", theirs)  # what is replaced comes back after the test
    assert theirs("basic-auth") == "mlflow.server.auth:create_app"
    assert "app = _find_app(app_name)" in inspect.getsource(server._run_server)
    mlflow_private.replace_app("basic-auth", "here:create_app")
    assert server._find_app("basic-auth") == "here:create_app"
    with pytest.raises(MlflowException, match="Failed to find app 'another'"):
        server._find_app("another")
