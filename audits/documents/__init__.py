"""Types of the JSON documents that Bandana writes: report and comparison; annexes have theirs."""
