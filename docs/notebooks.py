"""Writes the notebook of a tutorial from its page: `python docs/notebooks.py`. A test holds the two to each other.

Text becomes Markdown cells, a block after `<!-- python -->` a cell of code, and one after `<!-- file: NAME -->` a cell that
writes the file. What a page shows as printed is left out: the notebook prints it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "tutorials"
PAGES = ("ten-lines",)
_BLOCK = re.compile(r"<!-- (?P<mark>python|printed|file: (?P<file>[^ ]+)) -->\n```\w*\n(?P<body>.*?)^```\n", re.M | re.S)
_ONLY_ON_THE_PAGE = re.compile(r"<!-- page only -->\n.*?<!-- end -->\n", re.S)
_METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def notebook(page: str) -> str:
    """The notebook's text, in version 4.5 of its format and without outputs, from the text of a page."""
    text, cells, start = _ONLY_ON_THE_PAGE.sub("", page), [], 0
    for found in _BLOCK.finditer(text):
        cells.append(_cell("markdown", text[start : found.start()]))
        if found["mark"] != "printed":
            cells.append(_cell("code", (f"%%writefile {found['file']}\n" if found["file"] else "") + found["body"]))
        start = found.end()
    cells.append(_cell("markdown", text[start:]))
    kept = [cell for cell in cells if cell["source"]]
    listed = [cell | {"id": f"cell-{i}"} for i, cell in enumerate(kept)]
    whole = {"cells": listed, "metadata": _METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str) -> dict[str, Any]:
    outputs = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True), **outputs}


if __name__ == "__main__":
    for name in PAGES:
        text = notebook((FOLDER / f"{name}.md").read_text(encoding="utf-8"))
        (FOLDER / f"{name}.ipynb").write_text(text, encoding="utf-8")
