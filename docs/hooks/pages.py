"""MkDocs hook: pages, schemas and a drawing that are made from the code at each build, so that they cannot go stale."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the code beside the documentation, whatever is installed

import algorithm_parameters  # noqa: E402
import architecture_figure  # noqa: E402
import choice  # noqa: E402
import command_line  # noqa: E402
import planted_faults  # noqa: E402
import python_api  # noqa: E402
import ready_specs  # noqa: E402
import report_format  # noqa: E402
import spec_fields  # noqa: E402

WRITERS = {
    "reference/command-line.md": command_line.markdown,
    "reference/spec.md": spec_fields.markdown,
    "reference/specs.md": ready_specs.markdown,
    "reference/formats.md": report_format.markdown,
}


def on_config(config: Any) -> Any:
    """Lists the pages of the Python API where the navigation names it."""
    for section in config.nav:
        for pages in section.values():
            for page in pages if isinstance(pages, list) else ():
                if isinstance(page, dict) and "Python API" in page:
                    page["Python API"] = python_api.navigation()
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fills in the tables of algorithms and of their parameters."""
    return choice.filled(algorithm_parameters.filled(markdown))


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages, the drawing, and what is published beside them as files."""
    written = {place: writer() for place, writer in WRITERS.items()} | python_api.pages(ROOT)
    written["reference/planted-faults.txt"] = planted_faults.markdown()
    written |= report_format.schemas()
    written["reference/architecture.svg"] = architecture_figure.svg(ROOT)
    for place, text in written.items():
        files.append(File.generated(config, place, content=text))
    return files
