"""The page of ready specs: each YAML file of `experiments/`, under what it shows."""

from __future__ import annotations

import re
from pathlib import Path

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
_ROW = re.compile(r"^\| `([\w./-]+)\.yaml` \| (.*) \|$", re.MULTILINE)
_HEAD = """# Ready specs

Every checkout has these files in `experiments/`. `bandana check experiments/NAME.yaml` explains what one will do and
how long that takes, and `bandana run experiments/NAME.yaml` runs it; with `--audit` its algorithms are audited too. [Write a
spec](../how-to/write-a-spec.md) explains the fields.
"""


def markdown() -> str:
    """The page."""
    text = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
    parts = [_HEAD]
    for name, about in _ROW.findall(text):
        yaml = (EXPERIMENTS / f"{name}.yaml").read_text(encoding="utf-8")
        parts.append(f"## {name} {{#{name.replace('/', '-')}}}\n\n{_sentence(about)}\n\n```yaml\n{yaml}```")
    return "\n\n".join(parts) + "\n"


def _sentence(about: str) -> str:
    """What the list says of a spec, as a sentence."""
    if about.startswith(("that ", "what ", "which ")):
        about = f"shows {about}"
    return about[0].upper() + about[1:].removesuffix(".") + "."
