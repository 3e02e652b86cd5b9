"""`python -m bandana` is the command `bandana`."""

from bandana.flows.cli import main

main()
