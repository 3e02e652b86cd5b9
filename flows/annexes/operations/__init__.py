"""Operations: nights by the clock, alerts, a server for a team, and what keeps an installation in order."""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "panels": {
            "serve": "run", "account": "share", "share": "share", "prune": "keep", "doctor": "keep", "explain-time": "keep",
        },
        "commands": {
            "serve": f"{__name__}.commands:serve",
            "account": f"{__name__}.commands:account",
            "share": f"{__name__}.commands:share",
            "prune": f"{__name__}.commands:prune",
            "doctor": f"{__name__}.commands:doctor",
            "explain-time": f"{__name__}.times:explain_time",
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
