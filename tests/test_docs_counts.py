"""What `python -m benchmarks.docs` counts: by hand on small pages, and the goals that need no built site."""

import pytest
from documentation import ROOT

from benchmarks import docs

PAGE = """<html><body><nav>menu of words</nav><article><h1>Two words<a class="headerlink" href="#x">link</a></h1>
<p>Three more words, <code>one</code>.<br> And <math><mi>x</mi></math> two.</p><pre>not these</pre>
<table><tr><td>one cell</td><td>1,234.5 ± 6</td></tr></table></article>outside</body></html>"""


def test_words_of_prose_and_tables_are_counted():
    counted = docs.Words(PAGE)
    assert (counted.n, counted.n_numbers) == (2 + 4 + 2 + 2, 2)


def test_a_site_is_counted_page_by_page(tmp_path):
    (tmp_path / "reference").mkdir()
    for name in ("index.html", "404.html", "reference/spec.html"):
        (tmp_path / name).write_text(PAGE, encoding="utf-8")
    assert docs.site(tmp_path) == docs.Site(pages=2, words=10, numbers=2, reference=10)
    with pytest.raises(FileNotFoundError, match="build the site with `make docs`"):
        docs.site(tmp_path / "nothing")


def test_prose_is_what_people_read_as_sentences():
    page = "# Title\n\nA [cat](x.md) sat\ndown.\n\n- one item\n- two\n\n| a | b |\n|---|---|\n\n```sh\nls\n```\n"
    assert docs.prose(page) == "A cat sat\ndown.\none item.\ntwo."


def test_reading_ease_by_hand():
    """Six words of one syllable in two sentences: 206.835 - 1.015 x 3 - 84.6 x 1."""
    assert docs.reading_ease("The cat sat. The dog ran.") == pytest.approx(206.835 - 1.015 * 3 - 84.6)
    assert docs.reading_ease("Differential privacy necessitates considerable sophistication.") < 0
    with pytest.raises(ValueError, match="no reading ease"):
        docs.reading_ease("```sh\nls\n```\n")


@pytest.mark.parametrize("name", docs.FIRST)
def test_the_first_pages_read_easily(name):
    assert docs.reading_ease((ROOT / name).read_text(encoding="utf-8")) >= docs.LEAST_EASE


def test_the_readme_is_short():
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") <= 120
