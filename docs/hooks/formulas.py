"""MkDocs hook: formulas become MathML, which browsers draw with the font in `styles/fonts`, without a script."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_BAR = re.compile(r'<mo(?: fence="false")?(?: stretchy="false")?>(&#x02016;|&#x0007C;)</mo>')
"""A bar without `left` or `right`: browsers would stretch it to the height of its row, and put space around it."""


def on_page_content(text: str, **_: Any) -> str:
    """Replaces what the extension arithmatex marked."""

    def drawn(found: re.Match[str]) -> str:
        tag, kind, formula = found.groups()
        is_display = kind == "["
        mathml = convert(html.unescape(formula), display="block" if is_display else "inline")
        mathml = _BAR.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', mathml)
        return f'<{tag} class="formula">{mathml}</{tag}>'

    return _FORMULA.sub(drawn, text)
