"""Plain text as LaTeX, for tables and for labels of figures."""

from __future__ import annotations

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))
_WRITTEN = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\ensuremath{<}", ">": r"\ensuremath{>}",
    "−": r"\ensuremath{-}", "×": r"\ensuremath{\times}", "≥": r"\ensuremath{\geq}", "≤": r"\ensuremath{\leq}",
    "ε": r"\ensuremath{\varepsilon}", "δ": r"\ensuremath{\delta}", "µ": r"\ensuremath{\mu}", "μ": r"\ensuremath{\mu}",
    "α": r"\ensuremath{\alpha}", "β": r"\ensuremath{\beta}", "ρ": r"\ensuremath{\rho}", "–": "--", "…": r"\ldots{}",
    **{sign: rf"\textsuperscript{{{'--' if plain == '-' else plain}}}" for sign, plain in _SUPERSCRIPTS.items()},
}  # fmt: skip


def escaped(text: str) -> str:
    r"""LaTeX that sets a plain text as it is.

    >>> print(escaped("a_b & 10⁴"))
    a\_b \& 10\textsuperscript{4}
    """
    return "".join(_WRITTEN.get(sign, sign) for sign in text)
