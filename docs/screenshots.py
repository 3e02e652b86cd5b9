"""Takes the documentation's screenshots of a report: `python docs/screenshots.py bandana_data/suites/demo/report.html`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
FIRST_SCREEN = {"width": 1280, "height": 900}
FIGURES = {
    "report-tradeoff.png": "Error rates of the sharpest attack",
    "report-power.png": "Power: the share of audits like this one",
    "report-regret.png": "Regret of adar-ucb, calibration tight",
}
"""Picture -> how the caption of its figure begins."""
_MARGIN = 8


def main(report: Path) -> None:
    """The first screen, and the first row of each figure."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=FIRST_SCREEN)
        page.goto(report.absolute().as_uri())
        page.screenshot(path=IMAGES / "report.png")
        page.locator("details").evaluate("appendix => { appendix.open = true }")
        for name, caption in FIGURES.items():
            figure = page.locator("figure", has_text=caption).first
            box, first = figure.bounding_box(), figure.locator("svg").first.locator("xpath=../..").bounding_box()
            assert box is not None, f"the report has no figure {caption!r}"
            assert first is not None
            clip = {
                "x": box["x"] - _MARGIN,
                "y": box["y"] - _MARGIN,
                "width": box["width"] + 2 * _MARGIN,
                "height": first["y"] + first["height"] - box["y"] + 2 * _MARGIN,
            }
            page.screenshot(path=IMAGES / name, full_page=True, clip=clip)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
