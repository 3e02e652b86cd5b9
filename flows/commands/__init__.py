"""What each command of `bandana` does; `flows.cli` names them."""
