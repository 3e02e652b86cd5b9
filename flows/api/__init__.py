"""Interface of `import bandana`: suites and audits called from Python, without any server."""
