"""One block that is played, one cell that is audited: no orchestration."""
