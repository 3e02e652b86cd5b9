"""A report says what its document says, for any document, and never breaks on what a user wrote."""

import copy
import itertools
import json
import math
import re
import subprocess
import sys
from typing import get_args, get_type_hints

import pytest

from bandana.audits.bounds.methods import WORDS
from bandana.audits.documents.counterexample import Counterexample
from bandana.audits.documents.form import json_schema
from bandana.audits.reporting import figures, render, render_html, render_pdf, validate
from bandana.audits.reporting.document import REGRET
from bandana.audits.reporting.figures import drawing, regret_plots
from bandana.audits.reporting.numbers import name_of, number, power_of_ten
from bandana.audits.reporting.sections import counterexamples, measurement
from bandana.audits.reporting.sections.utility import family_of
from bandana.flows.commands.lookup import kinds
from tests.report_documents import (
    HOSTILE,
    Elements,
    at_test_budget,
    audit,
    black_box,
    bounded,
    bounds,
    cell,
    control,
    counterexample,
    failed,
    hostile,
    looks,
    make,
    releases,
    sample,
    three,
    whole,
    words_of,
)


@pytest.fixture(scope="module")
def page():
    return render_html(make())


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
        (("audits", 0), "verdict", "MAYBE", r"\$\.audits\[0\]\.verdict: 'MAYBE' must be one of PASS, NOT REFUTED, FAIL"),
        (("audits", 1, "mu"), "measured", math.inf, r"\$\.audits\[1\]\.mu\.measured: inf is not finite"),
        (("benchmark", "cells", 0), "final_mean", math.nan, r"cells\[0\]\.final_mean: nan is not finite"),
        (("audits", 0), "delta", "small", r"\$\.audits\[0\]\.delta: 'small' must be of type number"),
        (("environments", 0), "extra", 1, r"\$\.environments\[0\]: .* unknown properties extra"),
        ((), "schema", "bandana/report/1", r"\$\.schema: 'bandana/report/1' must be 'bandana/report/12'"),
        ((), "created", "yesterday", r"\$\.created: 'yesterday' must be an ISO 8601"),
        ((), "created", "2026-11-21T02:00:00", r"\$\.created: .* with an offset"),
        (("provenance",), "began", "yesterday", r"\$\.provenance\.began: 'yesterday' must be an ISO 8601"),
        (("provenance", "makers", 0), "ended", "2026-11-21", r"makers\[0\]\.ended: .* with an offset"),
        (("audits", 0, "provenance"), "began", "then", r"audits\[0\]\.provenance\.began: 'then' must be an ISO 8601"),
        (("audits", 0, "provenance"), "path", "/home", r"audits\[0\]\.provenance: .* unknown properties path"),
        (("evidence",), "sha256", "xyz", r"\$\.evidence\.sha256: 'xyz' breaks pattern"),
        (("environments", 0), "means", [0.1], r"\$\.environments\[0\]\.means: \[0.1\] must have length 2"),
        (("benchmark",), "grid", [1, 1, 2], r"\$\.benchmark\.grid: \[1, 1, 2\] must increase"),
        (("benchmark", "cells", 1), "low", [1.0], r"cells\[1\]\.low: \[1.0\] must have length 3"),
        (("benchmark", "cells", 1), "mu_spent", [1.0], r"cells\[1\]\.mu_spent: \[1.0\] must have length 3"),
        (("benchmark", "cells", 1), "environment", "moon", r"cells\[1\]\.environment: 'moon' must be one of bernoulli"),
        (("benchmark", "cells", 1), "mean", None, r"cells\[1\]\.mean: None is withheld, but other numbers"),
        (("audits", 0, "power"), "caught", [0.5], r"power\.caught: \[0.5\] must have length 11"),
        (("audits", 0, "power"), "factors", [1.0] * 11, r"power\.factors: .* must increase"),
        ((), "related", [{"label": "x", "path": "javascript:alert(1)"}], r"related\[0\]\.path: .* breaks pattern"),
        ((), "related", [{"label": "x", "path": "/etc/passwd"}], r"related\[0\]\.path: .* breaks pattern"),
        (("benchmark", "cells", 1), "label", "ucb", r"cells\[1\]\.label: 'ucb' occurs twice"),
        (
            ("audits", 0, "tradeoff"),
            "measured",
            [1.0, 0.0],
            r"tradeoff\.measured: \[1.0, 0.0\] must have length 51",
        ),
        (("audits", 0, "controls", 1), "caught", False, r"controls\[1\]\.caught: False contradicts expected and caught_by"),
        (("audits", 0, "controls", 1), "caught_by", [], r"controls\[1\]\.caught: True contradicts expected"),
        (
            ("audits", 0, "controls", 1),
            "caught_by",
            ["luck"],
            r"caught_by\[0\]: 'luck' must be one of sampling, determ",
        ),
        (("audits", 0), "controls", [control(caught=False)], r"verdict: 'PASS' contradicts .*'noise-halved'"),
        (("audits", 0), "controls", [], r"verdict: 'PASS' contradicts .*no planted fault"),
        (("audits", 0, "deterministic"), "counterexample", counterexample(), r"'PASS' contradicts .*counterexample"),
        (
            ("audits", 0, "deterministic"),
            "noise_finding",
            "release 0: no noise",
            r"'PASS' contradicts .*noise audit found that the noise does not",
        ),
        (
            ("audits", 0, "deterministic"),
            "counterexample",
            {"summary": "x"},
            r"counterexample: .* lacks the properties lines, kind",
        ),
        (("audits", 0, "mu"), "measured", 1.5, r"'PASS' contradicts .*measured mu 1.5 exceeds accounted mu 1"),
        (("audits", 0, "main"), "accounted", 1.5, r"'PASS' contradicts .*accounted mu 1.5 exceeds claimed mu 1"),
        (
            ("audits", 0, "epsilon"),
            "measured",
            9.0,
            r"'PASS' contradicts .*measured epsilon 9 exceeds accounted epsilon 4.377",
        ),
        (("audits", 0, "main"), "quantity", "sigma", r"main\.quantity: 'sigma' breaks pattern"),
        (
            ("audits", 0, "measurement", "bounds", 3),
            "view",
            "memory",
            r"bounds\[3\]\.view: 'memory' must be one of transcript",
        ),
        (
            ("audits", 0, "measurement", "bounds", 3),
            "budget",
            "small",
            r"bounds\[3\]\.budget: 'small' must be one of claimed, test",
        ),
        (("audits", 0, "measurement", "bounds", 3), "budget", "test", r"test_budget: None is null, but some bounds"),
        (("audits", 0, "measurement", "bounds", 3), "level", 0.04, r"measurement\.confidence: 0.95 .* add up to 0.08"),
        (("audits", 0, "measurement"), "smallest_factor", 0.5, r"smallest_factor: 0.5 breaks minimum"),
    ],
)
def test_rejects_and_names_path_value_and_problem(path, key, value, message):
    document = make()
    at(document, *path)[key] = value
    with pytest.raises(ValueError, match=message):
        validate(document)


def test_a_pass_is_refuted_at_the_test_budget_too():
    document = make(audits=[at_test_budget()])
    validate(document)
    document["audits"][0]["measurement"]["test_budget"]["main"]["measured"] = 1.1
    with pytest.raises(ValueError, match=r"at the test budget, measured mu 1.1 exceeds accounted mu 1"):
        validate(document)


def test_an_accountant_may_be_loose_in_what_the_claim_is_not_held_against():
    document = make()
    document["audits"][0]["epsilon"]["accounted"] = 5.0
    validate(document)


@pytest.mark.parametrize("name", kinds())
def test_every_property_of_the_schema_is_described_and_required_and_no_other_is_allowed(name):
    schema = json_schema(kinds()[name].form)
    definitions = schema["$defs"]

    def check(part, path):
        own = next((choice for choice in part.get("anyOf", ()) if "$ref" in choice), part)
        part = definitions[own["$ref"].rpartition("/")[2]] | part if "$ref" in own else part
        assert part.get("description"), path
        for name, inner in part.get("properties", {}).items():
            check(inner, f"{path}.{name}")
        if "items" in part and {"properties", "$ref"} & set(part["items"]):
            check(part["items"], f"{path}[]")
        if "object" in part.get("type", ()) and "properties" in part:
            assert part["additionalProperties"] is False, path
            assert sorted(part["required"]) == sorted(part["properties"]), path

    for name, part in {"$": schema, **definitions}.items():
        check(part, name)


def test_rejects_what_is_missing():
    document = make()
    del document["audits"][0]["claim"]["theorem"]
    with pytest.raises(ValueError, match=r"\$\.audits\[0\]\.claim: .* lacks the properties theorem"):
        validate(document)


# --- the page --------------------------------------------------------------------------------------------


def test_page_holds_every_figure_once(page):
    # The first picture, all algorithms, two trade-offs, the power curve that both audits share, regret, its budget.
    assert page.count("<svg") == 1 + 1 + 2 + 1 + 1 + 1
    assert page.count('role="img"') == page.count("<svg")
    names = [attributes["id"] for _, attributes in Elements(page).found if "id" in attributes]
    assert len(names) == len(set(names))


def test_page_says_what_the_document_says(page):
    for word in (
        "2 audits: 2 PASS.",
        "ab" * 32,
        "ba" * 32,
        "lists 1 files of evidence, each with both hashes",
        "Theorem 4",
        "4.377",
        "≥ 4.32",
        "200.1",
        "2 × 50,000",
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
    assert "".join(re.findall(r"<h2[^>]*>([\dA-Z])  ", page)) == "12345ABCDEFGHIJ"


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
    drawing.DRAWN.clear()
    render._sections_of.cache_clear()
    assert render_html(document) == page
    assert len(drawing.DRAWN) == page.count("<svg"), "drawn again, not kept"
    assert document == before
    small = make(audits=[]) | {"benchmark": None}
    assert render_pdf(small) == render_pdf(small)


def test_hostile_words_break_neither_page_nor_pdf():
    entries = [at_test_budget() | {"tradeoff": None}, failed(), black_box()]
    document = hostile(make(audits=entries))
    document["provenance"]["makers"][0]["versions"][HOSTILE] = "x" * 400
    text = render_html(document)
    parsed = Elements(text)
    assert not parsed.stack
    assert not any(tag == "script" for tag, _ in parsed.found)
    assert "&lt;script&gt;" in text
    assert "{{ 7*7 }}" in text
    assert render_pdf(document).startswith(b"%PDF")


def text_of(*audits):
    """The words of a page without a benchmark and trade-offs, which take long to draw."""
    document = make(audits=[entry | {"tradeoff": None} for entry in audits]) | {"benchmark": None}
    return words_of(render_html(document))


@pytest.fixture(scope="module")
def sample_page():
    document = json.loads(json.dumps(sample(), allow_nan=False))
    assert render_pdf(document).startswith(b"%PDF")
    text = render_html(document)
    assert not Elements(text).stack
    return text


def test_verdicts_stand_beside_their_power(sample_page):
    assert "5 audits: 2 PASS, 1 NOT REFUTED, 1 INCONCLUSIVE, 1 FAIL." in sample_page
    assert 'class="headline bad"' in sample_page
    for word in ("× 1.021", "× 1.023", "× 1.62", ">none</td>", "≥ 0.4127", "≥ 4.612", "0/1", ">FAIL</span>"):
        assert word in sample_page


def test_power_is_told_at_both_budgets(sample_page):
    text = words_of(sample_page)
    caught = "This audit would have caught, with 95 % probability,"
    assert f"{caught} noise too small by a factor of 1.023 or more at the test budget (1.312 at the claimed one)." in text
    assert "1-GDP (replace one reward); its µ: claimed 1, accounted 1, measured ≥ 0.9897." in text
    assert f"{caught} Rényi divergence of order 2 at 1.62 or more times its claimed value." in text
    assert "caught no factor with 95 % probability: noise that is too small may go unseen." in text
    assert "MISSED by sampling" in text
    assert "Test budget: the noise scale" not in text_of(audit())


def test_the_strongest_bound_of_each_kind_is_shown(sample_page):
    text = words_of(sample_page)
    assert "tight rdp(2, 0.01): the strongest bound of each kind; all 40 bounds hold together with 95 % confidence." in text
    assert "their_bandit.py:play: the strongest bound of each kind; all 4 bounds" in text
    shown = measurement.strongest(at_test_budget()["measurement"]["bounds"])
    assert len(shown) == 10
    assert [bound["budget"] for bound in shown] == ["claimed"] * 5 + ["test"] * 5
    taken = bounds("claimed", looks(1.0, 4.37721))
    assert {bound["lower"] for bound in measurement.strongest(taken)} == {look[-1] for look in looks(1.0, 4.37721)}


def test_bounds_above_the_claim_stand_out(sample_page):
    assert sample_page.count('<span class="badge bad">≥') == 3
    assert '<span class="badge bad">≥ 4.612</span>' in sample_page


@pytest.mark.parametrize("view", ["transcript", "actions", "report", "one_run"])
def test_every_view_is_explained(view):
    entry = audit()
    for bound in entry["measurement"]["bounds"]:
        bound |= {"view": view, "method": "a new method"}
    text = text_of(entry)
    assert measurement.VIEWS[view] in text
    assert "Method a new method" in text
    assert ("1 run, 200,000 canaries" in text) == (view == "one_run")


def test_every_bound_is_explained_in_its_own_words():
    entry = audit()
    for bound, (name, _) in zip(entry["measurement"]["bounds"], itertools.cycle(WORDS.items()), strict=False):
        bound["method"] = name
    used = {bound["method"] for bound in entry["measurement"]["bounds"]}
    text = text_of(entry)
    assert used
    for name in used:
        assert f"Method {name}" in text
        assert WORDS[name].split("'")[-1] in text, "but for quotes, which are escaped"


def test_both_measured_epsilons_stand_side_by_side():
    text = text_of(audit())
    assert "nothing assumed" in text
    assert "if Gaussian DP" in text
    assert "4.3774.377≥ 4.32" in text, "claimed, accounted, measured"
    assert "≥ 2.6≥ 4.32" in text, "the bound on epsilon itself, the conversion of that on mu"
    assert "The verdict compares the larger of both with the claim." in text


def test_a_function_has_no_ledger(sample_page):
    text = words_of(sample_page)
    assert "No ledger to account: their_bandit.py:play." in text
    assert "A plain function shows neither releases nor noise" in text
    alone = text_of(black_box())
    assert "The composition" not in alone
    assert "Noise source" not in alone
    assert ">no ledger</td>" in sample_page
    assert "accounted –, measured 0.391" in render_html(make(audits=[black_box()]) | {"benchmark": None})


def test_a_counterexample_is_told_to_people(sample_page):
    text = words_of(sample_page)
    for word in (
        "4 rounds; record 0 changes from [0, 0.25] to [5, 5]: release 0 moved by 5, 5 times its sensitivity 1",
        "release 0: the noise&#39;s deviation is 0.499 times the declared one",
        "NOT AS DECLARED",
        "Counterexample for own_bandit.py:bandit",
        "One record moves a value further than the noise is calibrated for",
        "its rewards, one per arm, are [0, 0.25] in the data set D and [5, 5] in its neighbor",
        "violation",
    ):
        assert word in text
    assert sample_page.count(">the same</td>") == 3
    assert sample_page.count(">violation</span>") == 1


KINDS = get_args(get_type_hints(Counterexample)["kind"])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_counterexample_is_told(kind):
    found = counterexample(kind=kind)
    parted = {
        "round": 2,
        "arm": 1,
        "neighbor_arm": None,
        "summary": "In round 2 arm 1 is played on D, and the run on D' has ended.",
    }
    total = {"record": 0, "found": 2.0, "allowed": 1.0, "summary": "record 0 pays for the 4 releases that are marked: 2-GDP"}
    if kind == "decision":
        found["difference"] = parted
        found["data"][2]["neighbor_arm"] = None
    if kind == "book":
        found["total"] = total
    if kind == "span":
        found["releases"] = releases([(1.0, 1.0), (0.0, 0.0), (1.0, 0.0), (0.0, 0.0)])
    if kind == "sequence":
        found["releases"][2] |= {"start": 2, "stop": 3, "carried": 0}
    entry = failed()
    entry["deterministic"]["counterexample"] = found
    text = text_of(entry)
    assert counterexamples.KINDS[kind] in text
    assert ("Arm played on D′" in text) == ("has ended." in text) == (kind == "decision")
    assert ("2-GDP" in text) == (kind == "book")
    assert ("none allowed" in text) == (kind == "span")
    assert ("2; carries 0 to 1" in text) == (kind == "sequence")


def test_a_long_counterexample_is_cut_and_says_so():
    found = counterexample(n_releases=5000)
    found["case"]["n_rounds"] = 5000
    row = found["data"][1]
    found["data"] = [{**row, "round": place} for place in range(100)]
    found["releases"] = releases([(1.0, 1.0)] * 99 + [(7.0, 1.0)])
    entry = failed()
    entry["deterministic"]["counterexample"] = found
    text = text_of(entry)
    assert "Showing 5 of 5,000 rounds, including the relevant ones." in text
    assert "Showing 5 of 5,000 releases, including the relevant ones." in text
    assert text.count("violation") == 1


@pytest.mark.parametrize("verdict", ["FAIL", "INCONCLUSIVE"])
def test_other_verdicts(verdict):
    bad = audit(verdict=verdict)
    numbers = three(1.0, 1.0, 2.0)
    bad["main"], bad["mu"], bad["epsilon"] = {"quantity": "mu", **numbers}, numbers, three(None, None, None)
    bad["tradeoff"], bad["measurement"]["bounds"] = None, []
    bad["controls"] = [control(caught=False) | {"caught_by": [], "measured": None}]
    document = make(audits=[bad, audit("other")])
    document["benchmark"] = None
    text = render_html(document)
    assert f"2 audits: 1 PASS, 1 {verdict}." in text
    assert f'class="headline {"bad" if verdict == "FAIL" else "unsure"}"' in text
    for word in (
        f">{verdict}</span>",
        "MISSED",
        "tight rdp(2, 1): no bound was computed.",
        "measured mu 2 exceeds claimed mu 1",
        "2/2",
        "0/1",
    ):
        assert word in text
    assert render_pdf(document).startswith(b"%PDF")


def test_a_benchmark_without_audits_opens_with_regret_and_has_no_empty_section():
    text = render_html(make(audits=[]))
    assert text.count("<svg") == 4
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", text)[:3] == ["1  In short", "2  Label", "3  Regret: the cost of privacy"]
    assert text.index("What privacy costs: final regret") < text.index('<section id="label"')
    assert "no test asked whether this is kept" in text
    for empty in ("No audit was run", "no accounting", "Mechanism and accounting", "Deterministic audit", "Measurement"):
        assert empty not in text.replace("No audit was run: run `bandana audit`.", "")
    assert "No audit: whether a promise is kept was not tested." in text
    assert "PASS</span>" not in text


def test_shared_words_stand_once():
    text = text_of(audit("a"), audit("b"))
    assert text.count("Corrected.") == text.count("One charge.") == 1


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


@pytest.mark.parametrize(
    ("quantity", "name"),
    [
        ("mu", "µ"),
        ("epsilon", "pure ε"),
        ("epsilon at delta 0.001", "ε at δ = 0.001"),
        ("divergence of order 2.5", "Rényi divergence of order 2.5"),
        ("rho", "ρ"),
    ],
)
def test_name_of_a_quantity(quantity, name):
    assert name_of(quantity) == name


def test_power_of_ten():
    assert [power_of_ten(10.0**k) for k in (-3, -1, 0, 3, 4)] == ["10⁻³", "0.1", "1", "1,000", "10⁴"]


def test_level_colors_do_not_depend_on_the_order():
    assert drawing.level_colors([10, 0.1, 1]) == drawing.level_colors([0.1, 1, 10, 1])
    assert len(set(drawing.level_colors([0.1, 1, 10]).values())) == 3
    assert drawing.level_colors([]) == {}


@pytest.mark.parametrize("final", [0.0, -5.0])
def test_regret_that_never_grows_is_drawn(final):
    flat = cell("flat", 1.0, final)
    svg = regret_plots.regret_curves([1, 30, 1000], [flat], drawing.level_colors([1.0]), top=max(flat["high"]))
    assert svg.startswith("<svg")


# --- bounds on the regret -----------------------------------------------------------------------------------


def test_a_bound_is_drawn_dashed():
    plain, colors = cell("one", 1.0, 50.0), drawing.level_colors([1.0])

    def drawn(found):
        return regret_plots.regret_curves([1, 30, 1000], [found], colors, top=60.0, ceiling=500.0)

    # The line, and one in the legend.
    assert drawn(bounded(plain)).count("stroke-dasharray") == 2
    assert "stroke-dasharray" not in drawn(plain)


def test_every_bound_is_told_with_its_theorem(whole_page):
    text = words_of(whole_page)
    assert text.count("Somebody, Theorem 5: 10 log t, beta = 3.1.") == 1, "once for the three levels of the panel"
    assert text.count("Dashed: the bound stated by its source, listed below.") == 1
    assert "rdp(2, 0.1), at most 3,991 at the end; rdp(2, 1), at most" in text
    assert "Dashed: the bound" not in words_of(render_html(make()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bound": [1.0]}, r"cells\[1\]\.bound: .* must have length 3, as the grid"),
        ({"bound_text": None}, r"cells\[1\]\.bound_text: None must name the theorem"),
        ({"bound": None}, r"cells\[1\]\.bound_text: .* must name the theorem of a bound, and be null without one"),
        (dict.fromkeys(REGRET), r"cells\[1\]\.bound: .* bounds a withheld regret"),
    ],
)
def test_rejects_a_bound_that_does_not_fit(change, message):
    document = whole()
    document["benchmark"]["cells"][1] |= change
    with pytest.raises(ValueError, match=message):
        validate(document)


def test_importing_is_light():
    heavy = {"matplotlib", "typst", "jinja2"}
    code = f"import sys, bandana.audits.reporting; print(*sorted({heavy!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_figures_stand_alone_and_are_those_of_the_page():
    document = make()
    found = figures(document)
    assert found
    assert all(svg.startswith("<svg") and svg.rstrip().endswith("</svg>") for svg in found.values())
    assert render_html(document).count("<svg") == len(found)


def test_what_two_documents_share_is_drawn_once(monkeypatch):
    other = make() | {"kind": "audit", "title": "Audit of one", "benchmark": None, "audits": make()["audits"][:1]}
    render_html(make())
    drawn = []
    real = drawing.svg_of
    monkeypatch.setattr(drawing, "svg_of", lambda *given: drawn.append(given) or real(*given))
    assert render_html(other).count("<svg") > 1
    assert len(drawn) == 1, "the epsilons of one audit instead of two; its curves are those of the suite"


# --- several environments, what is withheld, and other kinds ------------------------------------------------


@pytest.fixture(scope="module")
def whole_page():
    return render_html(whole())


def test_each_environment_has_its_own_regret(whole_page):
    text = words_of(whole_page)
    for word in ("Data: bernoulli", "Data: people.csv", "On bernoulli", "On people.csv", "Final regret on bernoulli after"):
        assert word in text
    assert "What privacy costs: final regret against ε as claimed, accounted and measured" in text
    pictures = [name for name in figures(whole()) if name.startswith("regret-against-privacy")]
    assert pictures == ["regret-against-privacy-bernoulli"], "that of people.csv is withheld"
    assert "Budget over time on people.csv" in text


def test_what_is_withheld_says_so_and_why(whole_page):
    assert "Regret on people.csv is withheld: the data are private." in whole_page
    assert whole_page.count(">withheld</td>") == 3 + 3, "on the page and in the appendix"
    assert "Files with withheld regret are not listed" in words_of(whole_page)
    assert "Mean rewards are unknown or withheld as private." in whole_page
    document = whole()
    document["benchmark"]["withheld"] = None
    with pytest.raises(ValueError, match=r"benchmark\.withheld gives no reason"):
        validate(document)


def test_an_experiment_where_all_is_withheld_is_rendered():
    document = whole()
    document["audits"] = []
    for item in document["benchmark"]["cells"]:
        item |= dict.fromkeys([*REGRET, "bound", "bound_text"])
    text = words_of(render_html(document))
    assert "Cumulative regret" not in text
    assert "Budget over time on bernoulli" in text


def test_audits_link_to_their_own_reports(whole_page):
    links = [attributes["href"] for tag, attributes in Elements(whole_page).found if tag == "a"]
    assert {link for link in links if not link.startswith("#")} == {f"audits/a{i}.html" for i in range(5)}


def test_regressions_stand_in_the_headline_and_in_a_section(whole_page):
    text = words_of(whole_page)
    assert "1 FAIL. 1 regression against an earlier run." in text
    assert "Compared with: baseline.json." in text
    assert "WORSE" in text
    assert "not worse" in text


def test_a_report_of_one_audit_says_nothing_of_regret():
    document = make(audits=[audit()]) | {"kind": "audit", "related": [{"label": "The whole", "path": "../report.html"}]}
    document["benchmark"] = None
    text = render_html(document)
    assert '<a href="../report.html">The whole</a>' in text
    assert "egret" not in words_of(text)
    assert "".join(re.findall(r"<h2[^>]*>([\dA-Z])  ", text)) == "1234ABCDEFGHI"


def test_a_catalog_begins_with_one_table_of_everything():
    labels = [f"block {i}" for i in range(20)]
    document = make(audits=[audit(label) | {"tradeoff": None} for label in labels]) | {"kind": "catalog", "benchmark": None}
    text = render_html(document)
    first = re.search(r"<table.*?</table>", text, flags=re.DOTALL).group()
    assert "The catalog at a glance" in text
    assert all(f">{label}</th>" in first for label in labels)
    for word in ("claimed", "accounted", "measured", "Faults caught", "Verdict"):
        assert word in first


# --- power, budget and frontier -----------------------------------------------------------------------------


def test_audits_with_the_same_power_curve_share_a_panel():
    text = text_of(audit("first"), audit("second"), black_box("third"))
    assert "first, second" in text
    drawn = figures(make(audits=[audit("first"), audit("second"), black_box("third")]))
    assert [name for name in drawn if name.startswith("power-")] == ["power-first-second", "power-third"]


def test_the_power_curve_is_told_to_those_who_do_not_see_it():
    page = render_html(make(audits=[audit()]) | {"benchmark": None})
    assert "At least 5 % at × 1.004, 50 % at × 1.013, 95 % at × 1.021." in page


def test_one_level_is_a_point_of_the_first_picture(page):
    assert "Final regret against ε. adar-ucb tight: 200.1 at ε = 4.377; ucb, not private: 90." in page


@pytest.mark.parametrize("spent", [[0.0, 0.0, 0.0], [0.5, 0.5, 0.5]])
def test_a_budget_that_never_grows_is_drawn(spent):
    item = cell("flat", 1.0, 5.0) | {"mu_spent": spent, "mu_claimed": None}
    assert regret_plots.budget_over_time([1, 30, 1000], [item], drawing.level_colors([1.0])).startswith("<svg")


def test_cells_that_differ_in_a_parameter_are_lines_of_their_own():
    def family(label):
        cell = {
            "label": label,
            "algorithm": "adap-tt",
            "calibration": "tight",
            "privacy_model": "central",
            "guarantee": "pure",
        }
        return family_of(cell)

    assert family("adap-tt tight eps=0.2 sampling=uniform") == family("adap-tt tight eps=1 sampling=uniform")
    assert family("adap-tt tight eps=0.2 sampling=uniform") != family("adap-tt tight eps=0.2 sampling=top-two")
    assert family("adap-tt tight eps=0.2 delta=1e-5") == family("adap-tt tight eps=1 delta=1e-6")
    assert family("adap-tt tight eps=0.2 mu=0.1 beta=2") == "adap-tt, calibration tight (central trust, pure), beta=2"
