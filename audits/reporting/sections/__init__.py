"""Sections of reports, one file each."""
