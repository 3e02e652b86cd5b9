"""Commands on the catalog and its accounting: list, calibrate, crosscheck."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import FAILURE, Debug, option, whole


def list_(
    as_json: Annotated[bool, typer.Option("--json", help="An array of objects, for machines.")] = False,
    debug: Debug = False,
) -> None:
    """List the algorithms with their privacy model, claim and source."""
    with failures(debug):
        from bandana.algorithms.catalog import CATALOG

        if as_json:
            typer.echo(json.dumps([entry.summary() for entry in CATALOG], indent=1))
            return
        from rich.console import Console
        from rich.table import Table

        columns = ("name", "family", "privacy_model", "guarantee", "calibrations", "claim", "source")
        table = Table(*(column.replace("_", " ") for column in columns), show_lines=True)
        for entry in CATALOG:
            facts = entry.summary()
            shown = [facts[column] for column in columns]
            table.add_row(*(", ".join(x) if isinstance(x, tuple) else str(x or "-") for x in shown))
        Console().print(table)


def calibrate(
    context: typer.Context,
    algorithm: Annotated[
        str, typer.Argument(help="Name and trust model, such as gp-ucb-joint; a wrong one lists them all.")
    ],
    epsilon: Annotated[float | None, option("Epsilon of the claim.")] = None,
    delta: Annotated[float | None, option("Delta of the claim; for Renyi DP, the delta at which epsilon is shown.")] = None,
    alpha: Annotated[float | None, option("Renyi order of the claim.")] = None,
    reading: Annotated[str | None, option("How the print is read where it is ambiguous; `all` for every one.")] = None,
    horizon: Annotated[int | None, option("Bandits: rounds T.", parser=whole)] = None,
    episodes: Annotated[int | None, option("RL: episodes K.", parser=whole)] = None,
    episode_length: Annotated[int | None, option("RL: steps H of an episode.", parser=whole)] = None,
    dimension: Annotated[int | None, option("Dimension of the features.", parser=whole)] = None,
    reward_bound: Annotated[float | None, option("CAPRI: largest absolute reward B.")] = None,
    s_max: Annotated[float | None, option("CAPRI: largest norm of a projected feature.")] = None,
    sigma_max: Annotated[float | None, option("CAPRI: the paper's bound on s_max.")] = None,
    norm_bound: Annotated[float | None, option("GP-UCB: RKHS norm B of the function.")] = None,
    noise_scale: Annotated[float | None, option("GP-UCB: sub-Gaussian scale rho of the rewards.")] = None,
    is_clipped: Annotated[bool | None, typer.Option("--clip/--no-clip", help="GP-UCB: clip rewards or not.")] = None,
    has_square: Annotated[bool | None, typer.Option("--square/--no-square", help="GP-UCB: release y^2 too.")] = None,
    switch: Annotated[float | None, option("AdaR-OFUL: doubling schedule C.")] = None,
    ridge: Annotated[float | None, option("AdaR-OFUL: regularizer lambda.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object, for machines.")] = False,
    debug: Debug = False,
) -> None:
    """Compare the noise that a paper prints with the noise that its claim needs."""
    with failures(debug):
        from bandana.flows.queries import calibrate as printed

        calibration = printed.find(algorithm)
        if calibration is None:
            nothing = {"algorithm": algorithm, "is_private": False, "readings": []}
            typer.echo(json.dumps(nothing) if as_json else printed.not_private(algorithm))
            return
        others = ("algorithm", "reading", "as_json", "debug")
        given = {name: value for name, value in context.params.items() if name not in others}
        found = printed.compare(calibration, reading, given)
        if as_json:
            typer.echo(json.dumps(printed.document(calibration, found), indent=1, allow_nan=False))
        else:
            printed.show(calibration, found)


def crosscheck(
    delta: Annotated[
        list[float] | None,
        typer.Option("--delta", help="Where epsilons are compared; give it several times.", show_default="1e-5"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object, for machines.")] = False,
    debug: Debug = False,
) -> None:
    """Hold every ledger against dp-accounting and opacus, and list the known defects of those libraries."""
    with failures(debug):
        from bandana.flows.queries.crosscheck import WIDTH, check, render, to_json

        result = check(delta)
        if as_json:
            typer.echo(json.dumps(to_json(result), indent=1, allow_nan=False))
        else:
            from rich.console import Console

            console = Console()
            if not console.is_terminal:
                console = Console(width=WIDTH)
            console.print(render(result))
        if not result.is_sound:
            raise typer.Exit(FAILURE)
