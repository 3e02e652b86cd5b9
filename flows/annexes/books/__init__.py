"""Budget books: what all runs over a private data set have spent together, kept so that nothing is removed unseen."""

from bandana.flows.annex import Annex
from bandana.flows.annexes.books import commands

ANNEX = Annex(
    groups={"book": commands.app},
    plugs={"books": {"keeper": "bandana.flows.annexes.books.keeper:Keeper"}},
    pages=("docs/book.md",),
)
