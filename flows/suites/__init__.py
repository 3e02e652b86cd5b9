"""Jobs that leave results: benchmarks, audits, reports, and what runs by the clock."""
