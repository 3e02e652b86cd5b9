"""Commands on budget books: open, show, verify, export, repair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import AsJson, Data, Debug, console
from bandana.flows.folder.settings import DataFolder, data_root

app = typer.Typer(help="What all runs over a private data set have spent together.", no_args_is_help=True)
_WIDTH = 110

Book = Annotated[
    str,
    typer.Argument(
        help="Name of the book, its file or address, or a spec that names it.", metavar="BOOK", show_default=False
    ),
]
Heads = Annotated[
    list[str] | None,
    typer.Option("--head", help="Hash of an entry that must be there, such as that of a report.", show_default=False),
]


@app.command("open")
def open_books(
    spec: Annotated[Path, typer.Argument(help="Spec that names the book.", metavar="SPEC", show_default=False)],
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Open the book of a spec, and charge the earlier runs over the same rows, whatever their file was called."""
    with failures(debug):
        from bandana.flows.annexes.books import lookup as books

        for line in books.open_books(spec, DataFolder.open(data_root(data))):
            typer.echo(line)


@app.command()
def show(book: Book, as_json: AsJson = False, data: Data = None, debug: Debug = False) -> None:
    """Show what was spent, by suite and cell and in all, and what is left."""
    with failures(debug):
        from bandana.flows.annexes.books import lookup as books

        for each in books.books_of(book, _folder(data)):
            shown = books.show(each.state())
            if as_json:
                typer.echo(json.dumps(shown, indent=1, allow_nan=False))
            else:
                console(_WIDTH).print(books.render(shown))


@app.command()
def verify(book: Book, head: Heads = None, as_json: AsJson = False, data: Data = None, debug: Debug = False) -> None:
    """Check that no entry was removed, edited or reordered, and that the end is as results and reports saw it."""
    with failures(debug):
        from bandana.flows.annexes.books import lookup as books

        folder = _folder(data)
        if book.endswith(".json"):
            done = [books.check_export(Path(book), head or ())]
        else:
            done = [books.verify(each, folder, head or ()) for each in books.books_of(book, folder)]
        for state in done:
            entries = f"{state['entries']} entr{'y' if state['entries'] == 1 else 'ies'}"
            line = f"{state['book']}: whole; {entries}, {state['seen']} of them looked up as seen before; "
            typer.echo(json.dumps(state) if as_json else f"{line}last {state['last']}")
            for note in () if as_json else state["clock"]:
                typer.echo(f"clock: {note}")


@app.command()
def export(
    book: Book,
    file: Annotated[Path | None, typer.Option("--to", help="File to write; standard output if left out.")] = None,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Write the book as JSON, which `bandana book verify FILE.json` checks without the database."""
    with failures(debug):
        from bandana.flows.annexes.books import lookup as books
        from bandana.flows.folder.store import write_whole

        text = books.exported(books.one_of(book, _folder(data)).state())
        if file is None:
            typer.echo(text, nl=False)
        else:
            write_whole(file, text.encode())


@app.command()
def repair(book: Book, data: Data = None, debug: Debug = False) -> None:
    """Let time go on from now in a book that a clock which was ahead has locked; every entry stays.

    An entry is added that states from which entry on times are not to be trusted. Check first that the clock here is right.
    """
    with failures(debug):
        from bandana.flows.annexes.books import lookup as books

        chosen = books.one_of(book, _folder(data))
        done = chosen.repair()
        typer.echo(f"{chosen.name}: entry {done.number} was added ({done.hash[:12]}); runs are charged again")


def _folder(data: Path | None) -> DataFolder:
    """The data folder; it is not made."""
    return DataFolder(data_root(data))
