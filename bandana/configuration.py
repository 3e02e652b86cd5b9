"""Settings of a team in one file, `bandana.toml`, in the working folder or one above it.

    data = "/srv/bandana/data"             # a relative path starts at the file's folder
    [servers]
    tracking = "https://mlflow.example.org"
    prefect = "https://prefect.example.org/api"
    [defaults]
    workers = 8

Each setting stands for an environment variable, which wins where it is set; options of a command win over both. Passwords
are no settings: they stay in the environment. A file that another user may write is refused, because results of private data
go where it says.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

NAME = "bandana.toml"


class ConfigurationError(ValueError):
    """A mistake in the file; the message names the file, the field, the value, and what to do."""


def _without_password(address: str) -> str:
    if urlsplit(address).password is not None:
        raise ValueError("it holds a password")
    return address


_Text = Annotated[StrictStr, Field(min_length=1)]
_Address = Annotated[_Text, AfterValidator(_without_password)]


def _setting(variable: str, wanted: str, **limits: int) -> Any:
    """A field that stands for an environment variable; `wanted` is what it must be."""
    return Field(None, description=wanted, json_schema_extra={"variable": variable}, **limits)  # type: ignore[call-overload]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Servers(_Table):
    """Servers of the team."""

    tracking: _Address | None = _setting("BANDANA_TRACKING_URI", "the address of MLflow's server, without a password")
    artifacts: _Address | None = _setting("BANDANA_ARTIFACT_ROOT", "where MLflow keeps files, without a password")
    user: _Text | None = _setting("MLFLOW_TRACKING_USERNAME", "your name on MLflow's server")
    prefect: _Address | None = _setting("PREFECT_API_URL", "the address of Prefect's server, without a password")


class Defaults(_Table):
    """Defaults of options."""

    workers: StrictInt | None = _setting("BANDANA_WORKERS", "a whole number of at least 1", ge=1)
    anonymous: StrictBool | None = _setting("BANDANA_ANONYMOUS", "true or false")


class Configuration(_Table):
    """Everything that the file may hold."""

    data: _Text | None = _setting("BANDANA_DATA", "the path of the data folder, or s3://BUCKET/PREFIX")
    servers: Servers = Field(Servers(), description="a table")
    defaults: Defaults = Field(Defaults(), description="a table")

    def variables(self, folder: Path) -> Iterator[tuple[str, str, str]]:
        """Each setting that the file gives: its name, its environment variable, and the value of that.

        Args:
          folder: the file's, in which a relative path of the data folder starts.
        """
        if self.data is not None and "://" not in self.data:
            self.data = str(folder / self.data)
        for prefix, table in (("", self), ("servers.", self.servers), ("defaults.", self.defaults)):
            for name, field in type(table).model_fields.items():
                value, extra = getattr(table, name), field.json_schema_extra
                if value is not None and isinstance(extra, dict):
                    yield prefix + name, str(extra["variable"]), str(int(value) if isinstance(value, bool) else value)


class Read(NamedTuple):
    """The file that was read.

    Attributes:
      path: where it is.
      applied: its settings that are in force.
      overruled: its settings whose environment variables were set already.
    """

    path: Path
    applied: list[str]
    overruled: list[str]

    def __str__(self) -> str:
        less = f"; the environment overrules {', '.join(self.overruled)}" if self.overruled else ""
        return f"{', '.join(self.applied) or 'nothing'} from {self.path}{less}"


_read: dict[Path, Read] = {}


def read() -> Read | None:
    """What `apply` read last in this process; None where there was no file."""
    return next(reversed(_read.values()), None)


def apply(start: Path | None = None) -> None:
    """Sets the environment variables of the nearest file that are not set yet; call before Prefect or MLflow is imported.

    Args:
      start: where the search begins; None: the working folder.

    Raises:
      ConfigurationError: the file cannot be used.
    """
    path = nearest(start or Path.cwd())
    if path is None or path in _read:
        return
    result = Read(path, [], [])
    for name, variable, value in load(path).variables(path.parent):
        (result.overruled if variable in os.environ else result.applied).append(name)
        os.environ.setdefault(variable, value)
    _read[path] = result


def nearest(start: Path) -> Path | None:
    """The file in a folder or the nearest one above it; None where there is none."""
    start = start.absolute()
    return next((place / NAME for place in (start, *start.parents) if (place / NAME).is_file()), None)


def load(path: Path) -> Configuration:
    """The checked settings of a file.

    Raises:
      ConfigurationError: it cannot be read, others may write it, or a setting is wrong; every mistake has a line.
    """
    try:
        facts = path.stat()
        if facts.st_uid not in (0, os.getuid()):
            raise ConfigurationError(f"{path}: belongs to another user, number {facts.st_uid}: copy it, or work elsewhere")
        if facts.st_mode & stat.S_IWOTH:
            raise ConfigurationError(f"{path}: everybody may write it; forbid that: chmod o-w {path}")
        return Configuration.model_validate(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        lines = [_words([str(part) for part in item["loc"]], item["input"]) for item in error.errors()]
        raise ConfigurationError("\n".join(f"{path}: {line}" for line in lines)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: not valid TOML: {error}") from None


def _words(place: list[str], given: object) -> str:
    """A mistake in words: the field, its value, and what to write instead."""
    from bandana.privacy_core.checks import suggestion

    fields, wanted, where = Configuration.model_fields, "", ".".join(place)
    for name in place:
        if name not in fields:
            near = suggestion(name, fields) or ";"
            return f"{where}: unknown setting {name!r}{near} known are: {', '.join(fields)}"
        wanted, fields = str(fields[name].description), getattr(fields[name].annotation, "model_fields", {})
    shown = "an address with a password" if "password" in wanted and "@" in str(given) else repr(given)
    return f"{where}: must be {wanted}, got {shown}"
