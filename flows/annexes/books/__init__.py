"""Budget books: what all runs over a private data set have spent together, kept so that nothing is removed unseen."""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "panels": {"book": "keep"},
        "groups": {"book": f"{__name__}.commands:app"},
        "books": {"keeper": f"{__name__}.keeper:Keeper"},
    },
    pages=("docs/book.md",),
)
