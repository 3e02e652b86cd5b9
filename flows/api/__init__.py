"""What `import bandana` offers: suites and audits called from Python, without any server."""
