"""Operations: nights by the clock, alerts, a server for a team, and what keeps an installation in order."""

from bandana.flows.annex import Annex
from bandana.flows.annexes.operations import commands_serve, commands_team, commands_upkeep

ANNEX = Annex(
    commands=(
        commands_serve.serve,
        commands_team.account,
        commands_team.share,
        commands_upkeep.prune,
        commands_upkeep.doctor,
    ),
    plugs={"steps": {"fresh": "bandana.flows.annexes.operations.fresh_nights:add_tonight"}},
    pages=(
        "docs/schedule.md",
        "docs/team.md",
        "docs/how-to/containers.md",
        "prefect.yaml",
        "deploy/systemd",
        "deploy/prefect.containers.yaml",
    ),
)
