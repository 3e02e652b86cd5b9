"""Reports in a real browser: nothing fails, nothing is loaded, nothing sticks out, every link leads somewhere."""

import shutil
from contextlib import contextmanager
from itertools import pairwise
from urllib.parse import unquote, urlsplit

import pytest

from bandana.audits.reporting import compare, render_html
from tests.report_documents import audit, failed, hostile, later, make, whole

pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip("no Chromium on this machine", allow_module_level=True)

SIZES = (1280, 390)
PAPER = 695  # an A4 page less its margins, in pixels of CSS
READABLE = 4.5  # contrast of text, WCAG 2.2 level AA
LOWEST_CONTRAST = """() => {
  const rgba = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *:not(svg):not(svg *)")) {
    const told = [...element.childNodes].filter(n => n.nodeType === 3).map(n => n.textContent.trim()).join("");
    if (!told || !element.getClientRects().length) continue;
    const [high, low] = [light(rgba(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => b - a);
    found.push([(high + .05) / (low + .05), told.slice(0, 60)]);
  }
  return found.sort((a, b) => a[0] - b[0])[0];
}"""
STICKING_OUT = """() => [...document.querySelectorAll("body *:not(svg *)")]
  .filter(e => !e.closest(".scroll, .panel, pre, .skip") && e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.tagName + ": " + e.textContent.slice(0, 60))"""


def documents():
    """Kind -> its document; links lead from the experiment to the audits and back."""
    one = make(audits=[failed()]) | {"kind": "audit", "benchmark": None}
    one["related"] = [{"label": "The whole report", "path": "../report.html"}]
    everything = make(audits=[audit(f"block {i}") | {"tradeoff": None} for i in range(18)])
    strange = hostile(make(audits=[failed()]))
    strange["provenance"]["makers"][0]["versions"]["<b>long</b>" * 20] = "y" * 400
    return {
        "report": whole(),
        "audits/a0": one,
        "catalog": everything | {"kind": "catalog", "benchmark": None},
        "comparison": compare(whole(), later()),
        "unchanged": compare(whole(), whole()),
        "hostile": strange,
        "hostile-comparison": compare(strange, make()),
        "nothing": make(audits=[]) | {"benchmark": None},
    }


PAGES = list(documents())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("pages")
    found = documents()
    texts = {name: render_html(document) for name, document in found.items()}
    for entry in found["report"]["related"]:
        texts.setdefault(entry["path"].removesuffix(".html"), texts["audits/a0"])
    for name, text in texts.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / f"{name}.html").write_text(text, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser, folder, name):
    """A page; when it is closed, nothing may have failed and nothing but the file been asked for."""
    troubles = []
    context = browser.new_context()
    page, address = context.new_page(), (folder / f"{name}.html").as_uri()
    page.on("console", lambda message: troubles.append(f"console, {message.type}: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: request.url == address or troubles.append(f"request: {request.url}"))
    page.goto(address)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")  # nothing hidden is measured
    yield page
    context.close()
    assert troubles == []


@pytest.fixture(scope="module", params=PAGES)
def page(request, browser, folder):
    """Each page, opened once for all tests: each sets the size and the medium that it needs."""
    with opened(browser, folder, request.param) as page:
        yield page


def test_a_page_fits_is_readable_and_fails_nowhere(page):
    for width in SIZES:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media="screen", color_scheme="light")
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), page.evaluate(STICKING_OUT)
        assert page.evaluate(STICKING_OUT) == [], width
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            contrast, told = page.evaluate(LOWEST_CONTRAST)
            assert contrast >= READABLE, (width, scheme, told)
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
            assert dark == (scheme == "dark")


def test_every_link_leads_somewhere(page, folder):
    targets = page.eval_on_selector_all("a[href]", "all => all.map(a => [a.getAttribute('href'), a.href])")
    assert targets
    inside = {written[1:] for written, _ in targets if written.startswith("#")}
    names = page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
    assert [name for name in inside if names.count(name) != 1] == []
    for written, resolved in targets:
        if not written.startswith("#"):
            parts = urlsplit(resolved)
            assert parts.scheme == "file"
            place = unquote(parts.path)
            assert place.startswith(f"{folder}/"), written
            assert (folder / place).is_file(), written


def test_from_the_experiment_to_an_audit_and_back(browser, folder):
    page = browser.new_page()
    page.goto((folder / "report.html").as_uri())
    page.locator("a[href='audits/a0.html']").first.click()
    assert page.locator("h1").inner_text() == "A title"
    assert page.url.endswith("/audits/a0.html")
    page.get_by_role("link", name="The whole report").click()
    assert page.url.endswith("/report.html")
    page.close()


def test_those_who_do_not_see_the_page_are_told(page):
    page.set_viewport_size({"width": 390, "height": 900})
    page.emulate_media(media="screen", color_scheme="light")
    levels = page.eval_on_selector_all("h1, h2, h3, h4, h5, h6", "all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    unnamed = """all => all.filter(e => {
      const label = e.getAttribute("aria-label") || document.getElementById(e.getAttribute("aria-labelledby"))?.textContent;
      return !label?.trim();
    }).length"""
    assert page.eval_on_selector_all("[role=img], [role=region], table:not(.sign-off), nav, section", unnamed) == 0
    shown = page.locator("svg").count()
    assert shown == page.locator("[role=img] > svg[aria-hidden=true]").count()
    assert page.locator("html[lang=en]").count() == 1
    stuck = """all => all.filter(e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX)
      && e.scrollWidth > e.clientWidth && e.tabIndex !== 0).length"""
    assert page.eval_on_selector_all("body *", stuck) == 0, "what scrolls must be reached by the keyboard"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"


def test_a_page_prints(page):
    page.set_viewport_size({"width": PAPER, "height": 900})
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), page.evaluate(STICKING_OUT)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    clipped = """all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 80))"""
    assert page.eval_on_selector_all(".scroll, pre", clipped) == []
    paper = page.pdf(format="A4", print_background=True)
    assert paper.startswith(b"%PDF")


def test_what_a_user_wrote_stays_words(browser, folder):
    with opened(browser, folder, "hostile") as page:
        assert page.locator("script, b").count() == 0
        assert "<script>alert(1)</script>" in page.locator("body").inner_text()
