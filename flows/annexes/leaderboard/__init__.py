"""The leaderboard: a benchmark of many problems, on which every algorithm of the catalog plays and is audited."""

from bandana.flows.annex import Annex
from bandana.flows.annexes.leaderboard.command import leaderboard

ANNEX = Annex(
    commands=(leaderboard,),
    plugs={
        "documents": {"leaderboard": "bandana.flows.annexes.leaderboard.document:LEADERBOARD"},
        "list": {"best": "bandana.flows.annexes.leaderboard.best:latest_lines"},
    },
    pages=(
        "docs/leaderboard.md",
        "docs/leaderboard_table.py",
        "docs/algorithm_figures.py",
        "experiments/benchmark",
        "benchmarks/audit_cost.py",
    ),
)
