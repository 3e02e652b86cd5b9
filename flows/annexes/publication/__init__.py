"""Publication: a finished suite for papers and other programs, as a figure, a LaTeX table, CSV and Parquet."""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "panels": {"export": "share"},
        "commands": {"export": f"{__name__}.command:export"},
        "results": {"plot": f"{__name__}.figure:plot", "export": f"{__name__}.export:export"},
    }
)
