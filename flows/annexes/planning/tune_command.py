"""The command tune."""

from __future__ import annotations

import typer

from bandana.flows.commands.agreement import Work, ask
from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import AsJson, Data, Debug, ExecutorName, SpecPath, Workers, Yes, open_data
from bandana.flows.commands.suites import begin, if_there, resources_of, warm_up, while_the_server_starts
from bandana.flows.folder.settings import data_root


def tune(
    spec: SpecPath,
    executor: ExecutorName = None,
    workers: Workers = None,
    yes: Yes = False,
    as_json: AsJson = False,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Choose the parameter that a spec's field `tuning` names, for every cell by one rule, on seeds that no report shows."""
    with failures(debug):
        from bandana.flows.plan.plan import Plan
        from bandana.flows.spec.spec import load_spec
        from bandana.flows.texts.mistakes import SpecError

        parsed, how = load_spec(spec), resources_of(executor, workers)
        if parsed.tuning is None:
            raise SpecError(
                f"{spec}: tuning: is missing; name a parameter and values to try, for example tuning: {{parameter: "
                "beta_scale, values: [0.01, 0.1, 1]}"
            )
        trials = {value: Plan.of(parsed.with_trial(value), data_root(data)) for value in parsed.tuning.values}
        ask(str(spec), [Work(trial, ["benchmark"]) for trial in trials.values()], if_there(data), how, is_agreed=yes)
        folder = open_data(data)
        begin(folder)
        warm_up(trials[parsed.tuning.values[0]].cells, ["benchmark"], how)
        from bandana.flows.annexes.planning.tuning import tune as choose

        while_the_server_starts(folder)
        done = choose(parsed, trials, str(folder.root), how)
        if as_json:
            typer.echo(done.model_dump_json(indent=1))
            return
        titles = trials[parsed.tuning.values[0]].titles
        width = max(map(len, titles.values()))
        for cell, value in done.chosen.items():
            means = [f"{each.mean:.4g} at {each.value:g}" for each in done.tried[cell] if each.mean is not None]
            why = f"mean regret {', '.join(means)}" if means else "drawn by the exponential mechanism; regret is withheld"
            typer.echo(f"{titles[cell]:<{width}}  {done.parameter} = {value:g}   ({why})")
        typer.echo(f"wrote {parsed.place_of_tuned}")
