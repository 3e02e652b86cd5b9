"""`CITATION.cff` and `docs/references.bib`: every algorithm's source can be cited."""

import re
import unicodedata
from pathlib import Path

import pytest
import yaml

import bandana
from bandana.algorithms.catalog import CATALOG

ROOT = Path(__file__).parents[1]
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", re.MULTILINE)


def _plain(text):
    """Lower-case letters, digits and spaces, without braces, accents and commands."""
    text = unicodedata.normalize("NFKD", re.sub(r"\\[`'\"^~]", "", text))
    return " ".join(re.sub(r"[^a-z0-9 ]", "", re.sub(r"[-:/]", " ", text.lower())).split())


def _references():
    entries = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8").split("\n@")[1:]
    return {entry.partition("{")[2].partition(",")[0]: dict(_FIELD.findall(entry)) for entry in entries}


def _is_of(fields, source):
    """First author, the year where the source names one, and the title's first words."""
    plain, year = _plain(source), re.search(r"\((\d{4})\)", source)
    author = _plain(fields["author"].partition(",")[0])
    years = {fields.get("year"), *re.findall(r"\d{4}", fields.get("note", ""))}
    title = " ".join(_plain(fields["title"]).split()[:4])
    return author in plain and title in plain and (year is None or year[1] in years)


@pytest.mark.parametrize("source", sorted({entry.source for entry in CATALOG}))
def test_each_source_can_be_cited(source):
    found = [key for key, fields in _references().items() if _is_of(fields, source)]
    assert len(found) == 1, f"docs/references.bib has {found or 'nothing'} for {source!r}"


def test_references_are_whole_and_told_apart():
    references = _references()
    text = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    assert len(references) == text.count("\n@")
    assert all({"author", "title"} <= set(fields) for fields in references.values())
    assert len({_plain(fields["title"]) for fields in references.values()}) == len(references)


def test_the_product_can_be_cited():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == bandana.__version__
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
