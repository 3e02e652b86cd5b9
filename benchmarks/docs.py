"""Counts pages, words and reading ease of the documentation, beside the goals that tests hold.

    make docs && python -m benchmarks.docs [site]

Words are those of prose and tables on the built pages, and have a letter; numbers are counted apart. Code blocks, formulas,
pictures and menus are not counted. The pages of `reference/` are written from the code and its docstrings, and counted apart
too. Reading ease is Flesch's (1948), 206.835 - 1.015 words per sentence - 84.6 syllables per word, of the prose of three
pages; Pyphen counts the syllables.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import pyphen

from benchmarks.result import Result

ROOT = Path(__file__).resolve().parents[1]
FIRST = ("README.md", "docs/index.md", "docs/tutorials/first-benchmark.md")
"""The pages that a newcomer reads first."""
MOST_PAGES = 60
MOST_WORDS = 60_000
LEAST_EASE = 50.0
_WORD = re.compile(r"\w[\w.,:/'’-]*")
_LETTER = re.compile(r"[^\W\d_]")
_EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_UNCOUNTED = {"pre", "math", "svg", "script", "style", "nav", "form"}
_NO_PROSE = re.compile(
    r"^```.*?^```|^\|.*?$|^#+ .*?$|<!--.*?-->|^---$.*?^---$|</?[^>]*>|\{[^}\n]*\}", re.MULTILINE | re.DOTALL
)


class Words(HTMLParser):
    """Number of words in the article of a built page, `n`, and of numbers, `n_numbers`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.n = self.n_numbers = 0
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _EMPTY:
            self._open.append("form" if ("class", "headerlink") in attrs else tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open or (tag == "a" and "form" in self._open):
            while self._open.pop() not in (tag, *(("form",) if tag == "a" else ())):
                pass

    def handle_data(self, data: str) -> None:
        if "article" in self._open and not _UNCOUNTED & set(self._open):
            tokens = _WORD.findall(data)
            n_words = sum(_LETTER.search(word) is not None for word in tokens)
            self.n += n_words
            self.n_numbers += len(tokens) - n_words


class Site(NamedTuple):
    """Sizes of a built site."""

    pages: int
    words: int
    """On the pages that people write."""
    numbers: int
    """Beside these words, most of them in tables."""
    reference: int
    """Words of the pages that are written from the code."""


def site(folder: Path) -> Site:
    """Counts a built site.

    Raises:
      FileNotFoundError: nothing is built there.
    """
    paths = [path for path in sorted(folder.rglob("*.html")) if path.name != "404.html"]
    if not paths:
        raise FileNotFoundError(f"{folder} has no page: build the site with `make docs`")
    counted = {path.relative_to(folder).as_posix(): Words(path.read_text(encoding="utf-8")) for path in paths}
    written = [page for path, page in counted.items() if not path.startswith("reference/")]
    reference = sum(page.n for path, page in counted.items() if path.startswith("reference/"))
    return Site(len(counted), sum(page.n for page in written), sum(page.n_numbers for page in written), reference)


def prose(markdown: str) -> str:
    """The sentences of a page: without headings, code blocks, tables, markup and addresses; list items end sentences."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", _NO_PROSE.sub("", markdown))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    lines = [re.sub(r"^(?:[-*]|\d+\.) ", "", part.strip()) for part in re.split(r"\n\s*\n|\n(?=\s*[-*] )", text)]
    return "\n".join(line if line.endswith((".", "!", "?", ":")) else f"{line}." for line in lines if _WORD.search(line))


def reading_ease(markdown: str) -> float:
    """Flesch's reading ease of a page's prose: 60 to 70 is plain English, below 30 is very difficult.

    Raises:
      ValueError: the page has no prose.
    """
    text = prose(markdown)
    words = re.findall(r"[A-Za-z][A-Za-z'’]*", text)
    if not words:
        raise ValueError("a page without prose has no reading ease")
    dictionary = pyphen.Pyphen(lang="en_US")
    syllables = sum(len(dictionary.positions(word)) + 1 for word in words)
    sentences = len(re.findall(r"[.!?](?=\s|$)", text))
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words)


def sizes_of(sizes: Site) -> list[Result]:
    """Pages and words beside their goals."""
    return [
        Result("pages of the documentation", sizes.pages, MOST_PAGES, ""),
        Result("words that people wrote, tables included", sizes.words, MOST_WORDS, ""),
    ]


def eases() -> list[Result]:
    """Reading ease of the first pages beside its goal."""
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in FIRST}
    return [Result(f"reading ease of {name}", reading_ease(text), LEAST_EASE, "", ">=") for name, text in texts.items()]


def main(folder: Path) -> int:
    """Prints each count beside its goal, and 1 if one is missed."""
    sizes = site(folder)
    rows = [*sizes_of(sizes), *eases()]
    for row in rows:
        print(row)
    print(f"{'numbers beside these words':<66} {sizes.numbers:>8,}")
    print(f"{'words of the reference, from the code':<66} {sizes.reference:>8,}")
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"))
