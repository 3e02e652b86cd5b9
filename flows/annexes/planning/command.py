"""The command calibrate."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.groups import grouped, helps
from bandana.flows.commands.options import Debug, option, real_option, whole


@dataclass(frozen=True)
class Algorithm:
    """Forms that are compared."""

    algorithm: Annotated[str, typer.Argument(help="Name, such as gp-ucb; a wrong one lists them all.")]
    model: Annotated[str | None, option("Trust model: central, joint, shuffle or local; all if not given.")] = None
    guarantee: Annotated[str | None, option("renyi, pure, approximate or zcdp; all that there are if not given.")] = None


@dataclass(frozen=True)
class Level:
    """The claim, and the reading of the print."""

    epsilon: Annotated[float | None, real_option("Epsilon of the claim.")] = None
    delta: Annotated[float | None, real_option("Delta of the claim; for Renyi DP and zCDP, where epsilon is shown.")] = None
    alpha: Annotated[float | None, real_option("Renyi order of the claim.")] = None
    rho: Annotated[float | None, real_option("Rho of a zero-concentrated claim.")] = None
    reading: Annotated[str | None, option("How the print is read where it is ambiguous; `all` for every one.")] = None


@dataclass(frozen=True)
class Size:
    """Public facts of the problem."""

    horizon: Annotated[
        int | None,
        typer.Option(
            "--horizon",
            "--episodes",
            help="Users: rounds T or episodes K, all of which are played.",
            show_default=False,
            parser=whole,
        ),
    ] = None
    n_actions: Annotated[int | None, typer.Option("--actions", help="Actions.", show_default=False, parser=whole)] = None
    dimension: Annotated[int | None, option("Dimension d of features or points.", parser=whole)] = None
    episode_length: Annotated[int | None, option("RL: steps H of an episode.", parser=whole)] = None
    reward_bound: Annotated[
        float | None, real_option("Bandits: rewards lie in [-B, B]; norm_bound if not given, else 1.")
    ] = None


@dataclass(frozen=True)
class Parameters:
    """Parameters of the algorithm."""

    n_features: Annotated[int | None, option("GP-UCB: number m of features.", parser=whole)] = None
    norm_bound: Annotated[float | None, real_option("Kernel bandits: RKHS norm B of the function.")] = None
    noise_scale: Annotated[
        float | None, real_option("GP-UCB: sub-Gaussian scale rho of the rewards, which the print counts.")
    ] = None
    is_clipped: Annotated[bool | None, typer.Option("--clip/--no-clip", help="GP-UCB: clip rewards or not.")] = None
    has_square: Annotated[bool | None, typer.Option("--square/--no-square", help="GP-UCB: release y^2 too, as printed.")] = (
        None
    )
    s_max: Annotated[
        float | None, real_option("CAPRI: largest norm of a projected feature, in whose units noise is shown.")
    ] = None
    sigma_max: Annotated[float | None, real_option("CAPRI: the paper's bound on s_max; as it if not given.")] = None
    switch: Annotated[float | None, real_option("AdaR-OFUL, LSVI-UCB: growth C between updates.")] = None
    ridge: Annotated[float | None, real_option("Regularizer lambda.")] = None
    others: Annotated[
        list[str] | None, typer.Option("--set", help="Another parameter of the algorithm, NAME=VALUE.", show_default=False)
    ] = None


@dataclass(frozen=True)
class Output:
    """Form of the answer."""

    as_json: Annotated[bool, typer.Option("--json", help="One object, for machines; an array of several forms.")] = False
    debug: Debug = False


@grouped
def calibrate(algorithm: Algorithm, level: Level, size: Size, parameters: Parameters, output: Output) -> None:
    """Compare an algorithm's calibrations: the noise as printed and as its claim needs it, and what each is worth."""
    with failures(output.debug):
        from bandana.flows.annexes.planning import calibrations

        entries = calibrations.find(algorithm.algorithm, algorithm.model, algorithm.guarantee)
        if not entries:
            nothing = {"algorithm": algorithm.algorithm, "is_private": False, "readings": []}
            typer.echo(json.dumps(nothing) if output.as_json else calibrations.not_private(algorithm.algorithm))
            return
        values = vars(level) | vars(size) | vars(parameters)
        reading, others = values.pop("reading"), values.pop("others")
        given = {name: value for name, value in values.items() if value is not None} | calibrations.assigned(others or [])
        compared = [calibrations.compare(entry, reading, given) for entry in entries]
        if output.as_json:
            documents = [calibrations.document(each) for each in compared]
            typer.echo(json.dumps(documents if len(documents) > 1 else documents[0], indent=1, allow_nan=False))
            return
        for index, each in enumerate(compared):
            typer.echo("\n" if index else "", nl=False)
            calibrations.show(each, helps(Level, Size, Parameters))
