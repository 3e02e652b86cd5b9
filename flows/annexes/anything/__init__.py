"""Anything: audits of what no catalog and no spec names, such as algorithms in files, functions, releases and programs.

`bandana.primitives` goes with it. `bandana.testing` stays, since pytest loads it; its `assert_private` needs this annex.
"""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "panels": {"audit_own": "audit", "audit_release": "audit", "refute": "audit"},
        "commands": {
            "audit_own": f"{__name__}.commands_own:audit_own",
            "audit_release": f"{__name__}.commands_release:audit_release",
            "refute": f"{__name__}.refutations.command:refute",
        },
        "names": {"Audit": f"{__name__}.api:Audit", "audit": f"{__name__}.api:audit"},
    },
    pages=(
        "bandana/primitives.py",
        "docs/bring-your-own.md",
        "docs/how-to/audit-a-release.md",
        "docs/refutations-searched.csv",
        "docs/refutations.md",
        "docs/refutations_table.py",
        "docs/tutorials/other-libraries.md",
        "examples/continual_sum.py",
        "examples/diffprivlib_releases.py",
        "examples/noisy_count.awk",
        "examples/opacus_step.py",
        "examples/opendp_tree.py",
        "experiments/refutations",
    ),
)
