"""Work of each command of `bandana`; `bandana.flows.cli` names them."""
