"""The leaderboard: a benchmark of many problems, on which every algorithm of the catalog plays and is audited."""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "panels": {"leaderboard": "run"},
        "commands": {"leaderboard": f"{__name__}.command:leaderboard"},
        "documents": {"leaderboard": f"{__name__}.document:LEADERBOARD"},
        "list": {"best": f"{__name__}.best:latest_lines"},
    },
    pages=(
        "docs/leaderboard.md",
        "docs/leaderboard_table.py",
        "docs/leaderboard-guarantees.csv",
        "docs/real-tables.md",
        "docs/real_tables.py",
        "docs/real-tables-pairs.csv",
        "docs/images/real-tables.svg",
        "docs/algorithm_figures.py",
        "benchmarks/default_scales.py",
        "experiments/benchmark",
        "experiments/real-tables",
        "benchmarks/audit_cost.py",
    ),
)
