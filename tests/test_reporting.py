"""A report says what its document says, for any document, and never breaks on what a user wrote."""

import copy
import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from audits.reporting import figures, plots, render_html, render_pdf, validate
from audits.reporting.numbers import number, power_of_ten

HOSTILE = "<script>alert(1)</script> #panic(\"x\") $x^2$ 'q' \\ {{ 7*7 }} {% raw %} *b* _i_ @ref `r` </svg> -->"


def audit(label="tight eps=1", mu=1.0, verdict="PASS"):
    fpr = [i / 10 for i in range(11)]
    return {
        "label": label,
        "algorithm": "adar-ucb",
        "calibration": "tight",
        "privacy_model": "central",
        "parameters": {"alpha": 2.0, "epsilon": mu},
        "unit": "one reward",
        "relation": "replace one record",
        "view_of_adversary": "every release",
        "claim": {"statement": "(2, 1)-RDP", "theorem": "Theorem 4", "source": "A source", "mu": mu},
        "delta": 1e-5,
        "mu": {"claimed": mu, "accounted": mu, "measured": 0.9 * mu},
        "epsilon": {"claimed": 4.37721 * mu, "accounted": 4.37721 * mu, "measured": 3.9 * mu},
        "accountant": {
            "method": "exact Gaussian DP",
            "formula": "mu = sqrt(sum of mu_i^2)",
            "events": [{"event": "Gaussian", "noise_multiplier": 1 / mu, "mu": mu, "epsilon": None, "count": 1}],
            "noise_source": "reproducible",
            "text": "One charge.",
        },
        "measurement": {
            "confidence": 0.95,
            "replays_per_side": 100000,
            "seed": 7,
            "table": "all zeros",
            "bounds": [
                {
                    "view": "transcript",
                    "attack": "likelihood ratio",
                    "neighbor": "record 5: 0 -> 1",
                    "mu_lower": 0.9 * mu,
                    "epsilon_lower": 3.0 * mu,
                    "threshold": None,
                    "false_positives": 15200,
                    "false_negatives": 15300,
                    "n_positive": 50000,
                    "n_negative": 50001,
                }
            ],
            "text": "Corrected.",
        },
        "structural": {"examples": 200, "counterexample": None},
        "controls": [
            {
                "name": "noise-redrawn",
                "fault": "noise is drawn anew",
                "expected": ["structural"],
                "caught_by": ["structural"],
                "mu_measured": 2.2,
                "caught": True,
            }
        ],
        "tradeoff": {
            "fpr": fpr,
            "claimed": [(1 - a) ** 2 for a in fpr],
            "measured": [(1 - a) ** 1.9 for a in fpr],
            "lower_bound": [(1 - a) ** 1.8 for a in fpr],
            "mu_lower": 0.9 * mu,
        },
        "verdict": verdict,
        "reasons": ["every planted fault was caught"],
    }


def cell(label, epsilon, final):
    mean = [final / 100, final / 10, final]
    return {
        "label": label,
        "algorithm": "ucb" if epsilon is None else "adar-ucb",
        "calibration": None if epsilon is None else "tight",
        "privacy_model": "none" if epsilon is None else "central",
        "epsilon": epsilon,
        "mu": None if epsilon is None else math.sqrt(epsilon),
        "replications": 20,
        "mean": mean,
        "low": [0.9 * m for m in mean],
        "high": [1.1 * m for m in mean],
        "final_mean": final,
        "final_low": 0.9 * final,
        "final_high": 1.1 * final,
    }


def make(audits=None):
    audits = [audit(), audit("tight eps=10", mu=3.0)] if audits is None else audits
    cells = [cell("ucb", None, 90.0), cell("private 1", 1.0, 200.123456)]
    return {
        "schema": "bandana/report/1",
        "title": "A title",
        "suite": "demo",
        "created": "2026-11-21T02:00:00+00:00",
        "environment": {
            "name": "bernoulli",
            "description": "Two arms.",
            "estimator": "Drawn.",
            "horizon": 1000,
            "actions": ["left", "right"],
            "means": [0.25, 0.75],
        },
        "audits": audits,
        "benchmark": {"grid": [1, 30, 1000], "replications": 20, "band": "95 % interval", "cells": cells},
        "software": {"bandana": "0.1.0"},
        "seeds": {"root": 20240, "tuple": [1, 2]},
        "spec": "name: demo\n",
        "commands": ["bandana run demo.yaml"],
        "evidence": {"sha256": "ab" * 32, "files": [{"path": "a/b.npz", "sha256": "cd" * 32}]},
    }


@pytest.fixture(scope="module")
def page():
    return render_html(make())


class Elements(HTMLParser):
    """Every element with its attributes, and the elements left open."""

    def __init__(self, text):
        super().__init__()
        self.found, self.stack = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "hr", "img", "link"}:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def at(document, *path):
    for step in path:
        document = document[step]
    return document


# --- the document ----------------------------------------------------------------------------------------


def test_accepts_a_document_read_back_from_json():
    validate(json.loads(json.dumps(make(), allow_nan=False)))


@pytest.mark.parametrize(
    ("path", "key", "value", "message"),
    [
        (("audits", 0), "verdict", "MAYBE", r"\$\.audits\[0\]\.verdict: 'MAYBE' must be one of PASS, FAIL"),
        (("audits", 1, "mu"), "measured", math.inf, r"\$\.audits\[1\]\.mu\.measured: inf is not finite"),
        (("benchmark", "cells", 0), "final_mean", math.nan, r"cells\[0\]\.final_mean: nan is not finite"),
        (("audits", 0), "delta", "small", r"\$\.audits\[0\]\.delta: 'small' must be of type number"),
        (("environment",), "extra", 1, r"\$\.environment: .* unknown properties extra"),
        ((), "schema", "bandana/report/2", r"\$\.schema: 'bandana/report/2' must be 'bandana/report/1'"),
        ((), "created", "yesterday", r"\$\.created: 'yesterday' must be an ISO 8601"),
        ((), "created", "2026-11-21T02:00:00", r"\$\.created: .* with an offset"),
        (("evidence",), "sha256", "xyz", r"\$\.evidence\.sha256: 'xyz' breaks pattern"),
        (("environment",), "means", [0.1], r"\$\.environment\.means: \[0.1\] must have length 2"),
        (("benchmark",), "grid", [1, 1, 2], r"\$\.benchmark\.grid: \[1, 1, 2\] must increase"),
        (("benchmark", "cells", 1), "low", [1.0], r"cells\[1\]\.low: \[1.0\] must have length 3"),
        (("benchmark", "cells", 1), "label", "ucb", r"cells\[1\]\.label: 'ucb' stands twice"),
        (
            ("audits", 0, "tradeoff"),
            "measured",
            [1.0, 0.0],
            r"tradeoff\.measured: \[1.0, 0.0\] must have length 11",
        ),
        (("audits", 0, "controls", 0), "caught", False, r"verdict: 'PASS' contradicts .*'noise-redrawn'"),
        (("audits", 0), "controls", [], r"verdict: 'PASS' contradicts .*no planted fault"),
        (("audits", 0, "structural"), "counterexample", "pair 3", r"'PASS' contradicts .*counterexample"),
        (
            ("audits", 0, "mu"),
            "measured",
            1.5,
            r"'PASS' contradicts .*measured mu 1.5 exceeds accounted mu 1",
        ),
        (
            ("audits", 0, "mu"),
            "accounted",
            1.5,
            r"'PASS' contradicts .*accounted mu 1.5 exceeds claimed mu 1",
        ),
    ],
)
def test_rejects_and_names_path_value_and_problem(path, key, value, message):
    document = make()
    at(document, *path)[key] = value
    with pytest.raises(ValueError, match=message):
        validate(document)


def test_rejects_what_is_missing():
    document = make()
    del document["audits"][0]["claim"]["theorem"]
    with pytest.raises(ValueError, match=r"\$\.audits\[0\]\.claim: .* lacks the properties theorem"):
        validate(document)


# --- the page --------------------------------------------------------------------------------------------


def test_page_holds_every_figure_once(page):
    assert page.count("<svg") == 1 + 2 + 2  # the epsilons, two trade-offs, one panel twice
    assert page.count('role="img"') == page.count("<svg")
    names = [attributes["id"] for _, attributes in Elements(page).found if "id" in attributes]
    assert len(names) == len(set(names))


def test_page_says_what_the_document_says(page):
    for word in (
        "2 audits: 2 PASS.",
        "ab" * 32,
        "cd" * 32,
        "Theorem 4",
        "4.377",
        "≥ 3.9",
        "200.1",
        "15,200 of 50,001",
    ):
        assert word in page
    assert "4.37721" not in page
    assert "200.123" not in page


def test_page_is_well_formed_and_accessible(page):
    parsed = Elements(page)
    assert not parsed.stack
    tags = [tag for tag, _ in parsed.found]
    assert tags.count("h1") == tags.count("main") == tags.count("header") == tags.count("footer") == 1
    assert all("scope" in attributes for tag, attributes in parsed.found if tag == "th")
    assert [int(n) for n in re.findall(r"<h2[^>]*>(\d)", page)] == list(range(1, 10))


def test_page_loads_nothing_and_runs_nothing(page):
    assert not re.findall(r"https?://", page)
    for tag, attributes in Elements(page).found:
        assert tag not in {"script", "link", "img", "iframe", "object"}
        assert not any(name.startswith("on") or name == "src" for name in attributes)
        assert all(attributes[name].startswith("#") for name in ("href", "xlink:href") if name in attributes)
    assert "@import" not in page
    assert not re.findall(r"url\((?!#)", page)


def test_the_same_document_gives_the_same_bytes(page):
    document = make()
    before = copy.deepcopy(document)
    assert render_html(document) == page
    assert document == before
    small = make(audits=[]) | {"benchmark": None}
    assert render_pdf(small) == render_pdf(small)


def hostile(value):
    if isinstance(value, dict):
        fixed = {"schema", "created", "verdict", "sha256"}
        return {k: v if k in fixed else hostile(v) for k, v in value.items()}
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return f"{HOSTILE} {value}" if isinstance(value, str) else value


def test_hostile_words_break_neither_page_nor_pdf():
    document = hostile(make(audits=[audit()]))
    document["software"][HOSTILE] = "x" * 400
    document["audits"][0]["structural"]["examples"] = 0
    text = render_html(document)
    parsed = Elements(text)
    assert not parsed.stack
    assert not any(tag == "script" for tag, _ in parsed.found)
    assert "&lt;script&gt;" in text
    assert "{{ 7*7 }}" in text
    assert render_pdf(document).startswith(b"%PDF")


@pytest.mark.parametrize("verdict", ["FAIL", "INCONCLUSIVE"])
def test_other_verdicts(verdict):
    bad = audit(verdict=verdict)
    bad["mu"]["measured"], bad["epsilon"] = 2.0, {"claimed": None, "accounted": None, "measured": None}
    bad["tradeoff"], bad["structural"]["counterexample"] = None, "record 3, release 2"
    bad["controls"][0] |= {"caught": False, "caught_by": [], "mu_measured": None}
    document = make(audits=[bad, audit("other")])
    document["benchmark"] = None
    text = render_html(document)
    assert f"2 audits: 1 PASS, 1 {verdict}." in text
    assert f'class="headline {verdict.lower()}"' in text
    for word in (
        f">{verdict}</span>",
        "MISSED",
        "record 3, release 2",
        "measured mu 2 exceeds claimed mu 1",
        "1/1",
        "0/1",
    ):
        assert word in text
    assert "No benchmark was run" in text
    assert render_pdf(document).startswith(b"%PDF")


def test_benchmark_only():
    text = render_html(make(audits=[]))
    assert text.count("<svg") == 2
    assert "makes no statement about privacy" in text
    assert "PASS</span>" not in text


def test_shared_words_stand_once():
    text = render_html(make(audits=[audit("a"), audit("b")]) | {"benchmark": None})
    assert text.count("Corrected.") == text.count("One charge.") == text.count("replace one record") == 1


# --- numbers and figures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (3.14159, "3.142"),
        (1 / 3000, "3.333 × 10⁻⁴"),
        (1e-5, "10⁻⁵"),
        (9.99999, "10"),
        (999999.9, "1,000,000"),
        (100000, "100,000"),
        (12345678, "12,345,678"),
        (-0.25, "−0.25"),
        (1234.5, "1,234"),
    ],
)
def test_number(value, text):
    assert number(value) == text


def test_power_of_ten():
    assert [power_of_ten(10.0**k) for k in (-3, -1, 0, 3, 4)] == ["10⁻³", "0.1", "1", "1,000", "10⁴"]


def test_level_colors_do_not_depend_on_the_order():
    assert plots.level_colors([10, 0.1, 1]) == plots.level_colors([0.1, 1, 10, 1])
    assert len(set(plots.level_colors([0.1, 1, 10]).values())) == 3
    assert plots.level_colors([]) == {}


@pytest.mark.parametrize("final", [0.0, -5.0])
def test_regret_that_never_grows_is_drawn(final):
    flat = cell("flat", 1.0, final)
    for is_log in (False, True):
        svg = plots.regret_curves([1, 30, 1000], [flat], plots.level_colors([1.0]), is_log=is_log, top=max(flat["high"]))
        assert svg.startswith("<svg")


def test_importing_is_light():
    heavy = {"matplotlib", "typst", "jinja2", "jsonschema"}
    code = f"import sys, audits.reporting; print(*sorted({heavy!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_figures_stand_alone_and_are_those_of_the_page():
    document = make()
    found = figures(document)
    assert found
    assert all(svg.startswith("<svg") and svg.rstrip().endswith("</svg>") for svg in found.values())
    assert render_html(document).count("<svg") == len(found)
