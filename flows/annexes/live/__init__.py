"""Live: a private bandit between real users, durable, and audited as it runs."""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "panels": {"live": "run", "audit-live": "audit"},
        "commands": {"audit-live": f"{__name__}.commands:audit_live"},
        "groups": {"live": f"{__name__}.commands:app"},
        "list": {"live": f"{__name__}.commands:pointer"},
        "names": {"live": "bandana.live"},
        "environments": {"live-log": f"{__name__}.logs:CLASSES"},
    },
    pages=("bandana/live.py",),
)
