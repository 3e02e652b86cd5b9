"""Types of the JSON documents that Bandana writes: report, comparison, leaderboard and registry entry."""
