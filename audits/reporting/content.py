"""Content of a report: sections of blocks, which both the web page and the PDF render."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable

from bandana.audits.documents.audit import Audit, ChargedEvent
from bandana.audits.documents.fields import present
from bandana.audits.documents.report import Environment, Report
from bandana.audits.reporting import origin
from bandana.audits.reporting.blocks import (
    TONES,
    Block,
    Section,
    badge,
    bullets,
    code_block,
    fact_list,
    heading,
    lines_of,
    pair_rows,
    paragraph,
    plain,
    right,
    shared_facts,
    span,
    table_block,
    verdict_badge,
)
from bandana.audits.reporting.document import REPORT, broken_order, contradictions_of_report, has_ledger, times_of_report
from bandana.audits.reporting.kinds import KINDS, Kind
from bandana.audits.reporting.numbers import NONE, number, unit_of
from bandana.audits.reporting.sections.answer import answer, sentence
from bandana.audits.reporting.sections.checklist import checklist
from bandana.audits.reporting.sections.counterexamples import deterministic
from bandana.audits.reporting.sections.label import TRUST, label
from bandana.audits.reporting.sections.measurement import measurement
from bandana.audits.reporting.sections.power import power
from bandana.audits.reporting.sections.regret_details import regret_details
from bandana.audits.reporting.sections.rounds import reach
from bandana.audits.reporting.sections.strength import is_secure, of_all_runs, promises
from bandana.audits.reporting.sections.summary import glossary, main_number, summary
from bandana.audits.reporting.sections.utility import utility

_Planned = tuple[str, str, Callable[[Report], list[Block]], bool]
"""Id, title and writer of a section, and whether the report has it."""

_PAGES = ("label", "audits", "checklist")
"""Sections that begin a page on paper: four pages with the first screen, and regret beside the audits."""
_VERDICTS = {
    "PASS": "the audit found no evidence against the claim, and had the power to find the planted faults",
    "NOT REFUTED": "the audit saw no release, only actions, and found no evidence against the claim in what it covered; "
    "it had the power to find the planted faults, and says nothing of other data",
    "FAIL": "the audit found evidence against the claim or against the code",
    "INCONCLUSIVE": "the audit could not decide; it is evidence neither for nor against the claim",
}
_NO_HASH = (
    "Files with withheld regret are not listed: with their hash, somebody who knows all rows but one could test guesses "
    "for that row."
)

_LIMITS = (
    "A lower bound is evidence, not proof. PASS means that these attacks, on these neighbors, with this many replays, did "
    "not refute the claim. The source has the proof; the audit tests that the code does what was proved.",
    "The bounds hold for the replayed data sets and neighbors. The search for the least favorable pair is not exhaustive: a "
    "less favorable one may exist.",
    "The verdict applies to the algorithm as it was run here: changed parameters, code or data need a new audit.",
    "With many audits, a bound may exceed the truth by chance: each audit holds at its own confidence, not all audits "
    "together.",
)
"""Limits of a verdict."""
_NOISE_RISKS = (
    "The noise is floating-point noise. Its low-order bits can reveal the value beneath, which the accounting does not "
    "model.",
    "Noise from a reproducible generator is for experiments and must not be deployed. A deployment needs the cryptographic "
    "noise source, whose noise cannot be replayed.",
    "The seed is printed in this report so that results can be reproduced. Anybody who knows the seed can subtract the "
    "noise: a published seed protects nobody, and must never be used in a deployment.",
)
"""Risks of noise from a reproducible generator."""
_RISKS = ("Timing, memory and other side channels are outside the claim and were not audited.",)
"""Risks that no audit covers."""


def sections(document: Report) -> list[Section]:
    """Sections of a report, in reading order: pages that everybody reads, then an appendix; none is empty.

    Returns:
      dictionaries `id`, `part`, `title` and `blocks`, see `blocks.Section`; figures hold their SVG text.
    """
    has_audits, has_benchmark = bool(document["audits"]), document["benchmark"] is not None
    is_catalog, is_promised = document["kind"] == "catalog", any(True for _ in promises(document))
    main: list[_Planned] = [
        ("answer", "In short", answer, is_promised and not is_catalog),
        ("label", "Label", label, not is_catalog),
        ("audits", "The catalog at a glance" if is_catalog else "Audits", summary, has_audits),
        ("regret", "Regret: the cost of privacy", utility, has_benchmark),
        ("checklist", "Checklist and sign-off", checklist, True),
    ]
    appendix: list[_Planned] = [
        ("scope", "Scope and claim", _scope, True),
        ("mechanism", "Mechanism and accounting", _mechanism, has_audits),
        ("measurement", "Measurement", measurement, has_audits),
        ("controls", "Power and planted faults", power, has_audits),
        ("deterministic", "Deterministic audit and noise audit", deterministic, has_audits),
        ("reasons", "Verdict and its reasons", _reasons, has_audits),
        ("regret-details", "Regret in detail", regret_details, has_benchmark),
        ("regressions", "Comparison with an earlier run", _regressions, document["regressions"] is not None),
        ("reproduce", "How to reproduce", _reproduce, True),
        ("evidence", "Evidence", _evidence, True),
        ("glossary", "Further terms", glossary, has_audits),
    ]
    written: list[Section] = []
    for marks, plan in ((string.digits[1:], main), (string.ascii_uppercase, appendix)):
        planned = [(key, title, write) for key, title, write, is_in in plan if is_in]
        for mark, (key, title, write) in zip(marks, planned, strict=False):
            part = "appendix" if plan is appendix else "page" if key in _PAGES and written else "main"
            written.append({"id": key, "part": part, "title": f"{mark}  {title}", "blocks": write(document)})
    return written


def headline(document: Report) -> tuple[str, str]:
    """Tone of a report's head, which is that of its worst verdict, and the answer in one sentence."""
    verdicts = [audit["verdict"] for audit in document["audits"]]
    worst = next((verdict for verdict in ("FAIL", "INCONCLUSIVE", "NOT REFUTED", "PASS") if verdict in verdicts), None)
    words = _counts(document) if document["kind"] == "catalog" else sentence(document)
    return "quiet" if worst is None else TONES[worst], words


def detail(document: Report) -> str:
    """Line below the head: the verdicts that were counted, the rounds that were seen, and all runs together."""
    parts = [] if document["kind"] == "catalog" else [_counts(document), reach(document), of_all_runs(document)]
    return " ".join(filter(None, parts))


def _counts(document: Report) -> str:
    counts = Counter(audit["verdict"] for audit in document["audits"])
    total = counts.total()
    worse = 0 if document["regressions"] is None else sum(row["is_worse"] for row in document["regressions"]["rows"])
    more = f" {worse} regression{'s' if worse > 1 else ''} against an earlier run." if worse else ""
    if not total:
        return f"No audit: whether a promise is kept was not tested.{more}"
    verdicts = ", ".join(f"{counts[v]} {v}" for v in ("PASS", "NOT REFUTED", "INCONCLUSIVE", "FAIL") if counts[v])
    return f"{total} audit{'s' if total > 1 else ''}: {verdicts}.{more}"


def _scope(document: Report) -> list[Block]:
    audits, environments = document["audits"], document["environments"]
    if audits:
        blocks = shared_facts(
            audits,
            [
                ("Unit of privacy", lambda a: a["unit"]),
                ("Neighboring relation", lambda a: a["relation"]),
                ("Trust model", lambda a: TRUST.get(a["privacy_model"], str(a["privacy_model"]))),
                ("The adversary sees", lambda a: a["view_of_adversary"]),
                ("Claim", lambda a: a["claim"]["statement"]),
                ("The claim as µ", lambda a: number(a["claim"]["mu"])),
                ("Proved in", lambda a: a["claim"]["theorem"]),
                ("Source", lambda a: a["claim"]["source"]),
                ("δ", lambda a: number(a["delta"])),
            ],
            "Claims by audit",
        )
    else:
        blocks = []
    for environment in environments:
        blocks.append(heading(f"Data: {environment['label']}" if len(environments) > 1 else "Data"))
        blocks += _data(environment)
    return blocks


def _data(environment: Environment) -> list[Block]:
    actions, means = environment["actions"], environment["means"]
    facts = fact_list(
        [
            ("Environment", [span(environment["name"], "code")]),
            ("Data", environment["description"]),
            ("Estimator", environment["estimator"]),
            ("Horizon", f"{number(environment['horizon'])} {unit_of([environment])}"),
        ]
    )
    if not actions:
        return [facts]
    columns = ["Action"] + ([right("Mean reward")] if means else [])
    rows = [[action] + ([number(means[index])] if means else []) for index, action in enumerate(actions)]
    caption = "Actions and their mean rewards." if means else "Actions. Mean rewards are unknown or withheld as private."
    return [facts, table_block(caption, columns, rows, narrow=True)]


def _mechanism(document: Report) -> list[Block]:
    audits = [audit for audit in document["audits"] if has_ledger(audit)]
    without = [audit["label"] for audit in document["audits"] if not has_ledger(audit)]
    blocks: list[Block] = []
    if without:
        blocks.append(
            paragraph(
                f"No ledger to account: {', '.join(without)}. A plain function shows its actions but not its noise. "
                "Without an accounted number, the report compares the claim with the measurement."
            )
        )
    if audits:
        blocks += _accounts(audits)
    blocks += [
        paragraph(
            "From µ to ε: a µ-GDP mechanism is (ε, δ)-differentially private for every ε ≥ 0 with the δ below, where Φ "
            "is the distribution function of N(0, 1)."
        ),
        code_block("δ = Φ(−ε/µ + µ/2) − exp(ε) Φ(−ε/µ − µ/2)"),
    ]
    return blocks


def _accounts(audits: list[Audit]) -> list[Block]:
    blocks = shared_facts(
        audits,
        [
            ("Accountant", lambda a: a["accountant"]["method"]),
            ("Derivation", lambda a: a["accountant"]["text"]),
            ("Noise source", lambda a: a["accountant"]["noise_source"]),
        ],
        "Accountants by audit",
    )
    formulas = list(dict.fromkeys(a["accountant"]["formula"] for a in audits))
    for formula in formulas:
        holders = [a["label"] for a in audits if a["accountant"]["formula"] == formula]
        of = "" if len(formulas) == 1 else f" of {', '.join(holders)}"
        blocks += [paragraph(f"The composition{of}:"), code_block(formula)]
    rows = [
        [
            audit["label"],
            event["event"],
            number(event["noise_multiplier"]),
            _price(event),
            number(event["count"]),
            main_number(audit["main"], "accounted"),
            number(audit["epsilon"]["accounted"]),
        ]
        for audit in audits
        for event in audit["accountant"]["events"]
    ]
    blocks.append(
        table_block(
            "Releases that the worst record pays for. Noise multiplier: noise scale divided by sensitivity. The last two "
            "columns compose all rows of one audit: in the quantity of its claim, and as ε at the audit's δ. They are of "
            "this run: a promise only if no other run of the algorithm can spend more, or under a budget.",
            ["Audit", "Noise", *map(right, ("Noise multiplier", "µ or ε per release", "Releases", "Composed", "ε at δ"))],
            rows,
            widths=[2.6, 1.4, 1.3, 1.2, 1.1, 1.3, 1.1],
        )
        if rows
        else paragraph("No value was released, so nothing was charged.")
    )
    return blocks


def _price(event: ChargedEvent) -> str:
    if event["mu"] is not None:
        return f"µ = {number(event['mu'])}"
    return NONE if event["epsilon"] is None else f"ε = {number(event['epsilon'])}"


def _reasons(document: Report) -> list[Block]:
    audits = document["audits"]
    texts = [[*audit["coverage"], *audit["reasons"]] for audit in audits]
    shared = [text for text in texts[0] if len(audits) > 1 and all(text in other for other in texts)]
    rows = [
        [
            audit["label"],
            verdict_badge(audit["verdict"]),
            lines_of([text for text in mine if text not in shared] or [NONE]),
            lines_of(order) if (order := broken_order(audit)) else "holds",
        ]
        for audit, mine in zip(audits, texts, strict=True)
    ]
    seen = [v for v in _VERDICTS if any(a["verdict"] == v for a in audits)]
    return [
        table_block(
            "Verdicts and their reasons. Order: whether claimed ≥ accounted ≥ measured, recomputed from the numbers of this "
            "report; missing numbers are not compared.",
            ["Audit", "Verdict", "Reasons", "Order"],
            rows,
            widths=[2.2, 1.6, 4, 2.4],
        ),
        *([paragraph("Of every audit:"), bullets(shared)] if shared else []),
        fact_list([(v, _VERDICTS[v].capitalize() + ".") for v in seen]),
        heading("What a verdict does not mean"),
        bullets(_LIMITS),
        heading("Residual risks"),
        bullets([*(() if is_secure(document) else _NOISE_RISKS), *_RISKS]),
    ]


def _regressions(document: Report) -> list[Block]:
    gate = present(document["regressions"])
    head = paragraph(f"Compared with: {gate['baseline']}.")
    if not gate["rows"]:
        return [head, paragraph("This run has no cell or audit in common with the earlier one, so nothing was compared.")]
    rows = [
        [
            row["label"],
            row["quantity"],
            *(NONE if value is None else plain(value) for value in (row["before"], row["now"])),
            badge("WORSE", "bad") if row["is_worse"] else "not worse",
            row["text"],
        ]
        for row in gate["rows"]
    ]
    columns = ["Cell or audit", "Number", right("Then"), right("Now"), "Outcome", "Rule"]
    return [head, table_block("Comparison with the earlier run", columns, rows, widths=[2, 1.6, 1.1, 1.1, 1.3, 3])]


def _reproduce(document: Report) -> list[Block]:
    blocks: list[Block] = []
    if document["commands"]:
        blocks += [heading("Commands"), code_block("\n".join(document["commands"]))]
    if document["spec"].strip():
        blocks += [heading("Specification"), code_block(document["spec"].rstrip("\n"))]
    blocks.append(heading("Seeds"))
    blocks.append(table_block("Seeds", ["Name", "Value"], pair_rows(document["seeds"]), narrow=True, widths=[1, 3]))
    if document["audits"]:
        blocks.append(
            table_block(
                "Parameters of the audited algorithms",
                ["Audit", "Parameters"],
                [
                    [a["label"], ", ".join(f"{k} = {plain(v)}" for k, v in a["parameters"].items()) or NONE]
                    for a in document["audits"]
                ],
                widths=[1.2, 3],
            )
        )
    return [*blocks, *origin.section(document["provenance"])]


def _evidence(document: Report) -> list[Block]:
    evidence = document["evidence"]
    return [
        fact_list(
            [
                ("SHA-256 over all evidence", [span(evidence["sha256"], "code")]),
                ("SHA-256 over its numbers", [span(evidence["numbers"], "code")]),
            ]
        ),
        *(
            [paragraph(_NO_HASH)]
            if document["benchmark"] is not None and document["benchmark"]["withheld"] is not None
            else []
        ),
        paragraph(
            f"The JSON file of this report lists {number(len(evidence['files']))} files of evidence, each with both hashes. "
            "The one over the numbers omits who computed a file and when: repeating the computation gives it again."
        ),
    ]


_KICKERS = {"experiment": "Report of an experiment", "audit": "Privacy audit report", "catalog": "Catalog report"}
KINDS["report"] = Kind(REPORT, Report, _KICKERS, headline, sections, detail, times_of_report, contradictions_of_report)
