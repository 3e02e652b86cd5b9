"""Makes the text of a Matplotlib SVG smaller: fewer digits and names, no indentation; what is seen stays the same."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
_GLYPH = re.compile(r'id="(DejaVu[\w-]+)"')
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_SCALE = re.compile(r"scale\([^)]*\)")
_GROUP = re.compile(r'<g id="[^"]*">')
_SPACE = re.compile(r"\s*\n\s*")


def slim(svg: str) -> str:
    """The same drawing with coordinates in tenths of a point and one-line paths."""
    names = {name: f"g{i}" for i, name in enumerate(dict.fromkeys(_GLYPH.findall(svg)))}
    for name in sorted(names, key=len, reverse=True):
        svg = svg.replace(f'id="{name}"', f'id="{names[name]}"').replace(f'"#{name}"', f'"#{names[name]}"')
    svg = _GROUP.sub("<g>", svg)  # nothing refers to a group
    kept = iter(_SCALE.findall(svg))
    rounded = _DIGITS.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), _COMMENT.sub("", svg))
    rounded = _SCALE.sub(lambda _: next(kept), rounded)
    lines = _SPACE.sub("\n", rounded).strip()
    for break_, joined in (("\nL ", "L"), ("\nQ ", "Q"), ("\nM ", "M"), ("\nz", "z")):
        lines = lines.replace(break_, joined)
    return lines + "\n"
