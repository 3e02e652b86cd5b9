"""Operations: nights by the clock, alerts, a server for a team, and what keeps an installation in order."""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "commands": {
            "serve": f"{__name__}.commands_serve:serve",
            "account": f"{__name__}.commands_team:account",
            "share": f"{__name__}.commands_team:share",
            "prune": f"{__name__}.commands_upkeep:prune",
            "doctor": f"{__name__}.commands_upkeep:doctor",
        },
        "steps": {"fresh": f"{__name__}.fresh_nights:add_tonight"},
    },
    pages=(
        "docs/schedule.md",
        "docs/team.md",
        "docs/how-to/containers.md",
        "prefect.yaml",
        "deploy/systemd",
        "deploy/prefect.containers.yaml",
    ),
)
