"""`python -m flows` is the command `bandana`."""

from flows.cli import main

main()
