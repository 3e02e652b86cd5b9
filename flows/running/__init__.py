"""Processes, servers, files and settings that commands run on."""
