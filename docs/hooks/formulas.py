"""MkDocs hook: formulas become MathML while the site is built; browsers draw that without a script."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(text: str, **_: Any) -> str:
    """Replaces what the extension arithmatex marked."""

    def drawn(found: re.Match[str]) -> str:
        tag, kind, formula = found.groups()
        is_display = kind == "["
        mathml = convert(html.unescape(formula), display="block" if is_display else "inline")
        return f'<{tag} class="formula">{mathml}</{tag}>'

    return _FORMULA.sub(drawn, text)
