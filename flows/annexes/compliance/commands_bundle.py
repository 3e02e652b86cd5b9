"""The commands bundle and key new."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import Data, Debug, echo, open_data, option

key = typer.Typer(help="Keys that bundles are signed with.", no_args_is_help=True)


def bundle(
    suite: Annotated[
        str, typer.Argument(help="A finished suite of the data folder, or a report's JSON file.", show_default=False)
    ],
    key: Annotated[Path | None, option("Sign with this private key, see `bandana key new`.")] = None,
    out: Annotated[Path | None, option("File to write; the default is NAME.bundle.zip beside the report.")] = None,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Pack a report, its evidence, its spec and a verifier into one file, with a manifest that can be signed."""
    with failures(debug):
        from bandana.flows.annexes.compliance.packing import ENDING, pack, report_of

        report = report_of(suite, open_data(data))
        name = report.parent.name if report.name == "report.json" else report.stem
        target = out or report.with_name(f"{name}{ENDING}")
        packed = pack(report, target, key)
        here = Path.cwd()
        target = target.relative_to(here) if target.is_relative_to(here) else target
        echo(f"bundle    {target}, {packed['files']} files")
        if packed["signed"]:
            echo("signature with the public key inside; send that key, or its name, by another way too")
        else:
            echo("signature none: anybody can make such a bundle; sign it with --key")
        echo(f"Anybody can check it:  bandana verify {target}")


@key.command("new")
def new(
    path: Annotated[Path, typer.Argument(help="File of the private key; the public one gets the ending .pub.")],
    debug: Debug = False,
) -> None:
    """Make a key to sign bundles with: a private file that only you can read, and a public one to give away."""
    with failures(debug):
        from bandana.flows.annexes.compliance.evidence.signature import KeyFileError, new_key
        from bandana.flows.texts.mistakes import SpecError

        try:
            public, name = new_key(path)
        except KeyFileError as error:
            raise SpecError(str(error)) from error
        echo(f"private   {path}, keep it to yourself", f"public    {public}", f"name      {name}")
