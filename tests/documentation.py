"""How the tests read the documentation: its pages, links, commands, and the blocks that are to be run."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import pytest

from bandana.flows.plan import plan

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[^>]*) -->\n)?```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_PROGRESS = re.compile(r"^\S+: \w+: \d+ of \d+ done \(\d+ %\).* so far.*\n", re.MULTILINE)
"""Lines that commands write to standard error where a step takes long, as on a slow machine."""
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")


@contextmanager
def listed_only() -> Iterator[None]:
    """Plans of specs inside name their cells without building an algorithm, as for ready specs `tests/test_docs.py` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "check_features", lambda *of_a_choice: None)
        yield


def pages() -> list[Path]:
    """Every page that people read: those of the site and those beside the code."""
    beside = [ROOT / "mlflow" / "README.md", ROOT / "experiments" / "README.md"]
    return [*sorted(ROOT.glob("*.md")), *(path for path in beside if path.exists()), *sorted((ROOT / "docs").rglob("*.md"))]


class Block(NamedTuple):
    """A fenced block, with the comment right before it."""

    mark: str
    language: str
    body: str


def blocks(text: str) -> list[Block]:
    """All fenced blocks, in order."""
    return [Block(*(found[key] or "" for key in ("mark", "language", "body"))) for found in _FENCE.finditer(text)]


def links(text: str) -> list[str]:
    """Where the links and images of a page lead, those in code left out."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as they are made from their text."""
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def command_lines(text: str) -> list[str]:
    """Each use of the command `bandana`, in blocks and in the text, without its output."""
    found = []
    for block in blocks(text):
        if block.language != "python":
            body = block.body.replace("\\\n", " ")
            found += re.findall(r"(?:^|\$ |&& |; |bin/|run: |=)(bandana [^\n]*)", body, re.MULTILINE)
    found += re.findall(r"`(bandana [^`\n]*)`", _FENCE.sub("", text))
    return found


def words(line: str) -> list[str]:
    """A command line's words up to where the shell takes over; brackets of what is optional are dropped."""
    split = shlex.split(re.sub(r"(?<=\s)\[|\](?=\s|$)", "", line), comments=True)
    end = next((i for i, word in enumerate(split) if word in ("|", ">", ">>", "&", "&&", ";", "||", "2>")), len(split))
    return [word for word in split[:end] if word != "..."]


def console(body: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, with what is shown as its output."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.replace("\\\n", " ").partition("\n")
        yield command, output


def is_as_shown(shown: str, printed: str) -> bool:
    """Whether the output is the one shown; `...` stands for anything."""
    pattern = r".*?".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def marked_pages() -> list[Path]:
    """The pages with a block that is marked to be run."""
    return [path for path in pages() if any(block.mark.startswith("run") for block in blocks(path.read_text("utf-8")))]


def types_a_page(
    path: Path, folder: Path, environment: Mapping[str, str], read: Callable[[str], str] = lambda printed: printed
) -> None:
    """Types a page from top to bottom: writes its files, runs its marked blocks, and holds what is printed against the page.

    Args:
      path: of the page.
      folder: where it is typed.
      environment: variables of the commands.
      read: what of printed text is compared with the page.
    """
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.mark.startswith("file: "):
            (folder / block.mark.removeprefix("file: ")).write_text(block.body, encoding="utf-8")
        if not block.mark.startswith("run"):
            continue
        expected = int(block.mark.partition("exit ")[2] or 0)
        commands = list(console(block.body))
        assert commands, f"a block that is to be run shows no command:\n{block.body}"
        for command, shown in commands:
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env={**environment, "COLUMNS": "150"}, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            assert done.returncode == (expected if command == commands[-1][0] else 0), f"{command}\n{done.stdout}"
            printed = read(done.stdout if "so far" in shown else _PROGRESS.sub("", done.stdout))
            assert is_as_shown(shown, printed), f"{command} printed\n{printed}\nand the page shows\n{shown}"


class Built(HTMLParser):
    """A built page: what it loads, where it links to, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Sorts a tag's addresses."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "prev", "next", "alternate"):
            self.loads.append(given.get("href", ""))
        else:
            self.loads += [given[name] for name in ("src", "data", "poster") if given.get(name) and name in given]
            self.loads += [part.split()[0] for part in given.get("srcset", "").split(",") if part.split()]
