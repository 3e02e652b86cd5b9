"""What each command of `bandana` does; `bandana.flows.cli` names them."""
