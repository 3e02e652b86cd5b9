"""Types of the JSON documents that Bandana writes: report, comparison and leaderboard."""
