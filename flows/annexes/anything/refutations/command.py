"""The command refute: plays cases of the refutation campaign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bandana import ready
from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import FAILURE, AsJson, Data, Debug, echo, open_data
from bandana.flows.texts.json_text import JsonObject

if TYPE_CHECKING:
    from bandana.flows.annexes.anything.refutations.case import Case

DEFAULT = Path("experiments/refutations")
SEED = 38


def refute(
    names: Annotated[list[str] | None, typer.Argument(help="Cases to play; all if left out.", show_default=False)] = None,
    folder: Annotated[Path, typer.Option(callback=ready.place, help="The campaign: a folder of cases.")] = DEFAULT,
    record: Annotated[bool, typer.Option("--record", help="Write measured.json into the cases' folders too.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Root of all seeds.")] = SEED,
    as_json: AsJson = False,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Audit claims of other libraries and papers through their own code: the refutation campaign."""
    with failures(debug):
        from bandana.flows.annexes.anything.refutations.campaign import (
            CONFIDENCE,
            confidence_of_each,
            coverage_of,
            n_audits,
            surprises,
        )
        from bandana.flows.annexes.anything.refutations.case import MEASURED, read_all
        from bandana.flows.folder.store import write_whole
        from bandana.flows.texts.mistakes import SpecError

        if record and folder.is_relative_to(ready.ROOT):
            raise SpecError("--record: these cases are installed; copy them by `python -m bandana.ready`, and record there")
        cases = read_all(folder)
        if unknown := [name for name in names or () if name not in cases]:
            raise SpecError(f"no case {unknown[0]!r} in {folder}; there are {', '.join(cases)}")
        n, place = n_audits(cases), open_data(data).root / "refutations"
        if not as_json:
            echo(f"{n} audits in {len(cases)} cases; all bounds hold together at {CONFIDENCE:.0%} confidence, "
                 f"each at {confidence_of_each(n):.6f}")  # fmt: skip
        documents: list[JsonObject] = []
        for name in names or cases:
            document = _played(name, cases[name], folder / name, place, n, seed, is_quiet=as_json)
            content = (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()
            for target in (place / name, *([folder / name] if record else [])):
                write_whole(target / MEASURED, content)
            documents.append(document)
        wrong = [f"{document['case']}: {line}" for document in documents for line in surprises(document)]
        if as_json:
            typer.echo(json.dumps(documents, indent=1, allow_nan=False))
        else:
            echo(
                str(coverage_of(documents)),
                f"results and evidence  {place}",
                *(f"not as the case says: {line}" for line in wrong),
            )
        if wrong:
            raise typer.Exit(FAILURE)


def _played(name: str, case: Case, folder: Path, place: Path, n: int, seed: int, *, is_quiet: bool) -> JsonObject:
    """Plays one case, writes its evidence, and returns its results."""
    from bandana.flows.annexes.anything.refutations.campaign import CONFIDENCE, confidence_of_each
    from bandana.flows.annexes.anything.refutations.playing import play
    from bandana.flows.folder.store import write_whole
    from bandana.flows.keys.versions import versions

    entries: list[JsonObject] = []
    played = play(case, folder, place / "environments", confidence=confidence_of_each(n), seed=seed)
    for number, one in enumerate(played, start=1):
        if one.evidence is not None:
            write_whole(place / name / f"{number}.evidence.npz", one.evidence)
            one.entry["evidence"] = f"{number}.evidence.npz"
        entries.append(one.entry)
        if not is_quiet:
            echo(_line(name, one.entry))
    return {
        "case": name,
        "title": case.title,
        "library": case.library,
        **versions("bandana"),
        "seed": seed,
        "confidence_of_all": CONFIDENCE,
        "n_audits": n,
        "audits": entries,
    }


def _line(name: str, entry: JsonObject) -> str:
    """One audit in one line."""
    if "measured" not in entry:
        return f"{entry['verdict']:<12} {name}: {entry['mechanism']}: {'; '.join(entry['reasons'])}"
    sign = "<" if entry["verdict"] == "FAIL" else ">="
    word = {"FAIL": "REFUTED"}.get(entry["verdict"], entry["verdict"])
    return (
        f"{word:<12} {name}: {entry['label']} [{entry['role']}]: {entry['quantity']} claimed {entry['claimed']:.4g} {sign} "
        f"measured {entry['measured'] or 0:.4g} ({entry['runs_per_side']} runs a side, {entry['seconds']:.0f} s)"
    )
