"""What a report says: sections of blocks, from which both the web page and the PDF are set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from audits.reporting import findings, plots
from audits.reporting.blocks import (
    Audit,
    Block,
    at_least,
    bullets,
    cell_of,
    code_block,
    column,
    fact_list,
    figure_block,
    heading,
    lines_of,
    pair_rows,
    paragraph,
    plain,
    shared_facts,
    span,
    table_block,
    verdict_badge,
)
from audits.reporting.document import broken_order, has_ledger
from audits.reporting.numbers import NONE, name_of, number, symbol_of

_VERDICTS = {
    "PASS": "the audit found nothing against the claim, and had the power to find the planted faults",
    "FAIL": "the audit found evidence against the claim or against the code",
    "INCONCLUSIVE": "the audit cannot tell; it counts neither for nor against the claim",
}
_TRUST = {
    "none": "none: no privacy is claimed",
    "central": "central: one trusted curator sees the data; what it releases is protected",
    "joint": "joint: one trusted curator sees the data; each user is protected from what all the others see",
    "local": "local: nobody is trusted; each record is protected before it leaves its user",
}


def sections(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The sections of a report, in the order in which they are read.

    Args:
      document: a valid report document.

    Returns:
      dictionaries `id`, `title` and `blocks`; figures hold their SVG text.
    """
    plan: list[tuple[str, str, Callable[[dict[str, Any]], list[Block]]]] = [
        ("verdicts", "Verdict at a glance", _summary),
        ("scope", "1  Scope and claim", _scope),
        ("mechanism", "2  Mechanism, and how epsilon is derived", _mechanism),
        ("measurement", "3  What the audit did and measured", findings.measurement),
        ("controls", "4  Power and planted faults", findings.power),
        ("structural", "5  Audit without statistics, and audit of the noise", findings.structural),
        ("reasons", "6  Verdict and its reasons", _reasons),
        ("regret", "7  Regret: what privacy costs", _regret),
        ("reproduce", "8  How to reproduce", _reproduce),
        ("evidence", "9  Evidence and sign-off", _evidence),
    ]
    return [{"id": key, "title": title, "blocks": write(document)} for key, title, write in plan]


def headline(document: dict[str, Any]) -> tuple[str, str]:
    """The worst verdict of a document (or NONE) and one sentence that counts all of them."""
    counts = Counter(audit["verdict"] for audit in document["audits"])
    total = counts.total()
    if not total:
        return "NONE", "No audit: this report makes no statement about privacy."
    worst = next(verdict for verdict in ("FAIL", "INCONCLUSIVE", "PASS") if counts[verdict])
    said = ", ".join(f"{counts[v]} {v}" for v in ("PASS", "INCONCLUSIVE", "FAIL") if counts[v])
    return worst, f"{total} audit{'s' if total > 1 else ''}: {said}."


def time_of(created: str) -> str:
    """An ISO time for people: to the minute, with its offset."""
    moment = datetime.fromisoformat(created)
    offset = moment.strftime("%z")
    return moment.strftime("%Y-%m-%d %H:%M ") + ("UTC" if offset == "+0000" else f"UTC{offset[:3]}:{offset[3:5]}")


# --- sections --------------------------------------------------------------------------------------------


def _summary(document: dict[str, Any]) -> list[Block]:
    audits = document["audits"]
    if not audits:
        return [paragraph("This report holds no audit. It makes no statement about privacy.")]
    deltas = {audit["delta"] for audit in audits}
    one_delta = len(deltas) == 1
    at = f"ε at δ = {number(next(iter(deltas)))}" if one_delta else "ε at δ"
    columns = [column("Algorithm"), column("Verdict"), column("Claim")]
    groups = [("", 3)]
    if not one_delta:
        columns.append(column("δ", right=True))
        groups[0] = ("", 4)
    mains = list(dict.fromkeys(audit["main"]["quantity"] for audit in audits))
    for title in (at, name_of(mains[0]) if len(mains) == 1 else "Number of the claim"):
        columns += [column(role, right=True, role=role) for role in plots.ROLES]
        groups.append((title, 3))
    columns += [column("Smallest fault seen", right=True), column("Faults caught", right=True)]
    groups.append(("", 2))
    rows = []
    for audit in audits:
        row = [cell_of(audit["label"]), verdict_badge(audit["verdict"]), cell_of(audit["claim"]["statement"])]
        row += [] if one_delta else [cell_of(number(audit["delta"]))]
        row += [cell_of(_role_number(audit["epsilon"], role)) for role in plots.ROLES]
        row += [cell_of(_main_number(audit["main"], role, names=len(mains) > 1)) for role in plots.ROLES]
        caught = sum(control["caught"] for control in audit["controls"])
        row += [
            cell_of(findings.factor_of(audit["measurement"]["smallest_factor"])),
            cell_of(f"{caught}/{len(audit['controls'])}"),
        ]
        rows.append(row)
    blocks = [
        table_block(
            "Verdicts. Claimed: what the source promises. Accounted: what our accountant derives. Measured: a lower bound "
            f"found by attack. A dash ({NONE}): no finite number, or no ledger to account.",
            columns,
            rows,
            groups=groups,
            widths=[1.9, 2.2, 1.9] + ([] if one_delta else [0.8]) + [1.25] * 6 + [1.1, 0.95],
        )
    ]
    drawn = [audit for audit in audits if any(value is not None for value in audit["epsilon"].values())]
    for start in range(0, len(drawn), 10):
        part = drawn[start : start + 10]
        blocks.append(
            figure_block(
                "The three epsilons of each audit. The claim must be at least what is accounted, and "
                "that at least what "
                "is measured: the marks of one audit must not move right from top to bottom.",
                [(plots.three_epsilons(part), _describe_epsilons(part))],
                size="medium",
            )
        )
    blocks += [
        heading("How to read the numbers"),
        fact_list(
            [
                (
                    "ε (epsilon), δ (delta)",
                    "Bound on the privacy loss, in nats: with one record replaced, any outcome becomes "
                    "at most exp(ε) times likelier, except with a probability of about δ. Smaller is "
                    "more private.",
                ),
                (
                    "µ (mu)",
                    "The same promise in one number (Gaussian differential privacy): telling two data "
                    "sets that differ in one record apart is as hard as telling N(0, 1) from N(µ, 1). "
                    "Smaller is more private.",
                ),
                *(
                    [
                        (
                            "Number of the claim",
                            "What a claim is held against in the first place, in its own definition: µ, ε (without a δ: of "
                            "pure privacy), D for a Rényi divergence, or ρ of zero-concentrated privacy.",
                        )
                    ]
                    if len(mains) > 1
                    else []
                ),
                (
                    "Measured",
                    "A statistical lower bound: with the stated confidence the true privacy loss is at least this. A value "
                    "below the claim is expected; a value above it refutes the claim.",
                ),
                (
                    "Smallest fault seen",
                    "The power of the audit. With 95 % probability it would have caught a number of the claim this many "
                    "times as large as claimed; for µ and for pure ε that is noise too small by this factor. Section 4 says "
                    "at which budget.",
                ),
                (
                    "Planted fault",
                    "A deliberately broken copy of the algorithm. An audit that misses it has too little power, and then "
                    "no PASS is given.",
                ),
                ("Regret", "Reward lost against the best action, summed over the rounds. Smaller is better."),
            ]
        ),
    ]
    return blocks


def _scope(document: dict[str, Any]) -> list[Block]:
    audits, environment = document["audits"], document["environment"]
    facts: list[tuple[str, Any]] = []
    blocks: list[Block] = []
    if audits:
        shared, table = shared_facts(
            audits,
            [
                ("Unit of privacy", lambda a: a["unit"]),
                ("Neighboring relation", lambda a: a["relation"]),
                ("Trust model", lambda a: _TRUST.get(a["privacy_model"], str(a["privacy_model"]))),
                ("The adversary sees", lambda a: a["view_of_adversary"]),
                ("Claim", lambda a: a["claim"]["statement"]),
                ("The claim as µ", lambda a: number(a["claim"]["mu"])),
                ("Proved in", lambda a: a["claim"]["theorem"]),
                ("Source", lambda a: a["claim"]["source"]),
                ("δ", lambda a: number(a["delta"])),
            ],
            "Claims, as far as they differ.",
        )
        facts += shared
        blocks += table
    else:
        blocks.append(paragraph("No privacy claim was audited."))
    blocks = ([fact_list(facts)] if facts else []) + blocks
    blocks += [
        heading("Data"),
        fact_list(
            [
                ("Environment", [span(environment["name"], "code")]),
                ("Data", environment["description"]),
                ("Estimator", environment["estimator"]),
                ("Horizon", f"{number(environment['horizon'])} rounds"),
            ]
        ),
    ]
    if environment["actions"]:
        means = environment["means"]
        columns = [column("Action")] + ([column("Mean reward", right=True)] if means else [])
        rows = [
            [cell_of(action)] + ([cell_of(number(means[index]))] if means else [])
            for index, action in enumerate(environment["actions"])
        ]
        blocks.append(table_block("Actions" + (" and their mean reward." if means else "."), columns, rows, narrow=True))
    return blocks


def _mechanism(document: dict[str, Any]) -> list[Block]:
    audits = [audit for audit in document["audits"] if has_ledger(audit)]
    without = [audit["label"] for audit in document["audits"] if not has_ledger(audit)]
    if not document["audits"]:
        return [paragraph("No audit, hence no accounting, in this report.")]
    said: list[Block] = []
    if without:
        said.append(
            paragraph(
                f"No ledger to account: {', '.join(without)}. A plain function shows its actions and nothing of its noise. "
                "There is no accounted number, and only what is claimed and what is measured stand side by side."
            )
        )
    if audits:
        said += _accounts(audits)
    said += [
        paragraph(
            "From µ to ε: a µ-Gaussian private mechanism is (ε, δ)-differentially private for every ε ≥ 0 with the δ below, "
            "where Φ is the distribution function of N(0, 1)."
        ),
        code_block("δ = Φ(−ε/µ + µ/2) − exp(ε) Φ(−ε/µ − µ/2)"),
    ]
    return said


def _accounts(audits: list[Audit]) -> list[Block]:
    shared, differing = shared_facts(
        audits,
        [
            ("Accountant", lambda a: a["accountant"]["method"]),
            ("Derivation", lambda a: a["accountant"]["text"]),
            ("Noise source", lambda a: a["accountant"]["noise_source"]),
        ],
        "Accountants, as far as they differ.",
    )
    said = ([fact_list(shared)] if shared else []) + differing
    formulas = list(dict.fromkeys(a["accountant"]["formula"] for a in audits))
    for formula in formulas:
        holders = [a["label"] for a in audits if a["accountant"]["formula"] == formula]
        of = "" if len(formulas) == 1 else f" of {', '.join(holders)}"
        said += [paragraph(f"The composition{of}:"), code_block(formula)]
    rows = [
        [
            cell_of(audit["label"]),
            cell_of(event["event"]),
            cell_of(number(event["noise_multiplier"])),
            cell_of(_price(event)),
            cell_of(number(event["count"])),
            cell_of(_main_number(audit["main"], "accounted", names=True)),
            cell_of(number(audit["epsilon"]["accounted"])),
        ]
        for audit in audits
        for event in audit["accountant"]["events"]
    ]
    said.append(
        table_block(
            "What the worst record pays for. Noise multiplier: scale of the noise over the sensitivity. The last two "
            "columns are the composition of all rows of one audit: the number of its claim, and ε at the audit's δ.",
            [
                column("Audit"),
                column("Noise"),
                column("Noise multiplier", right=True),
                column("µ or ε of one", right=True),
                column("Releases", right=True),
                column("Composed", right=True),
                column("ε at δ", right=True),
            ],
            rows,
            widths=[2.6, 1.4, 1.3, 1.2, 1.1, 1.3, 1.1],
        )
        if rows
        else paragraph("No value was released: nothing is paid for.")
    )
    return said


def _price(event: dict[str, Any]) -> str:
    named = [f"{symbol} = {number(event[key])}" for key, symbol in (("mu", "µ"), ("epsilon", "ε")) if event[key] is not None]
    return named[0] if named else NONE


def _reasons(document: dict[str, Any]) -> list[Block]:
    audits = document["audits"]
    blocks: list[Block] = []
    if audits:
        rows = []
        for audit in audits:
            order = broken_order(audit)
            rows.append(
                [
                    cell_of(audit["label"]),
                    verdict_badge(audit["verdict"]),
                    lines_of(audit["reasons"] or [NONE]),
                    lines_of(order) if order else cell_of("holds"),
                ]
            )
        blocks.append(
            table_block(
                "Verdicts and their reasons. Order: whether claimed ≥ accounted ≥ measured, recomputed "
                "by this report from the "
                "numbers above; a number that does not exist is not compared.",
                [column("Audit"), column("Verdict"), column("Reasons"), column("Order")],
                rows,
                widths=[2.2, 1.6, 4, 2.4],
            )
        )
        seen = [v for v in _VERDICTS if any(a["verdict"] == v for a in audits)]
        blocks.append(fact_list([(v, _VERDICTS[v].capitalize() + ".") for v in seen]))
    blocks += [
        heading("What a verdict does not mean"),
        bullets(
            [
                "A lower bound is evidence, not proof. PASS says that these attacks, on these neighbors, "
                "with this many replays, did not refute the claim. A proof is in the source; the audit "
                "tests that the code does what was proved.",
                "The bounds hold for the data sets and neighbors that were replayed. A worse pair was searched for, not "
                "over all pairs: it may exist.",
                "The verdict is about the algorithm as it was run here: changed parameters, code or data need a new audit.",
                "With many audits, some bound may by chance exceed the truth: each audit holds at its "
                "own confidence, not all audits together.",
            ]
        ),
        heading("Residual risks"),
        bullets(
            [
                "The noise is floating-point noise. Its low-order digits can betray the value beneath, "
                "which the accounting does not model.",
                "Noise from a reproducible generator is for experiments and must not be deployed. A "
                "deployment needs the cryptographic source, whose noise this report could not replay.",
                "The seed is printed below so that results can be repeated. Whoever knows the seed can "
                "subtract the noise: a seed in a report protects nobody, and must never be used for a "
                "deployment.",
                "Timing, memory and other side channels are outside the claim and were not audited.",
            ]
        ),
    ]
    return blocks


def _regret(document: dict[str, Any]) -> list[Block]:
    benchmark = document["benchmark"]
    if benchmark is None:
        return [paragraph("No benchmark was run: this report says nothing about utility.")]
    cells, grid = benchmark["cells"], benchmark["grid"]
    colors = plots.level_colors([c["epsilon"] for c in cells if c["epsilon"] is not None])
    top = max((max(cell["high"]) for cell in cells), default=1.0)
    twins = [cell for cell in cells if cell["epsilon"] is None]
    families = list(dict.fromkeys(_family(cell) for cell in cells if cell["epsilon"] is not None))
    none: list[Any] = [None]
    blocks: list[Block] = [
        paragraph(
            f"Cumulative regret over {number(grid[-1])} rounds. Lines: mean over "
            f"{number(benchmark['replications'])} "
            f"replications. Bands: {benchmark['band']}. Left: linear axes; right: the same on logarithmic "
            "axes. "
            "All panels share their vertical scale."
        )
    ]
    panels = []
    for family in families or none:
        own = [cell for cell in cells if cell["epsilon"] is not None and _family(cell) == family]
        same = [twin for twin in twins if family is not None and twin["algorithm"] == family[0]]
        panels.append((_family_name(family), (same or twins) + own))
    for title, drawn in panels:
        described = _describe_regret(title, drawn, grid[-1])
        images = [
            (
                plots.regret_curves(grid, drawn, colors, is_log=is_log, top=top),
                described + (" Logarithmic axes." if is_log else " Linear axes."),
            )
            for is_log in (False, True)
        ]
        blocks.append(figure_block(f"Regret of {title}. Dashed: not private.", images, size="large"))
    twin = twins[0]["final_mean"] if len(twins) == 1 and twins[0]["final_mean"] > 0 else None
    columns = [
        column("Cell"),
        column("Trust"),
        column("ε", right=True),
        column("µ", right=True),
        column("Runs", right=True),
        column("Final regret", right=True),
        column("Interval", right=True),
    ] + ([column("Times the twin", right=True)] if twin else [])
    rows = [
        [
            cell_of(cell["label"]),
            cell_of(cell["privacy_model"]),
            cell_of(number(cell["epsilon"])),
            cell_of(number(cell["mu"])),
            cell_of(number(cell["replications"])),
            cell_of(number(float(cell["final_mean"]))),
            cell_of(f"{number(float(cell['final_low']))} to {number(float(cell['final_high']))}"),
        ]
        + ([cell_of(f"{cell['final_mean'] / twin:.2f}")] if twin else [])
        for cell in cells
    ]
    note = " Times the twin: final regret over that of the same task without privacy." if twin else ""
    blocks.append(
        table_block(
            f"Final regret after {number(grid[-1])} rounds, in units of reward; ε as the source of each "
            "cell states it. "
            f"Interval: {benchmark['band']}.{note}",
            columns,
            rows,
            widths=[2.8, 1.1, 0.8, 0.9, 0.9, 1.2, 2] + ([1.2] if twin else []),
        )
    )
    return blocks


def _reproduce(document: dict[str, Any]) -> list[Block]:
    blocks: list[Block] = []
    if document["commands"]:
        blocks += [heading("Commands"), code_block("\n".join(document["commands"]))]
    if document["spec"].strip():
        blocks += [heading("Specification"), code_block(document["spec"].rstrip("\n"))]
    blocks.append(heading("Seeds and software"))
    blocks.append(
        table_block(
            "Seeds.",
            [column("Name"), column("Value")],
            pair_rows(document["seeds"]),
            narrow=True,
            widths=[1, 3],
        )
    )
    blocks.append(
        table_block(
            "Software.",
            [column("Package"), column("Version")],
            pair_rows(document["software"]),
            narrow=True,
            widths=[1, 3],
        )
    )
    if document["audits"]:
        blocks.append(
            table_block(
                "Parameters of the audited algorithms.",
                [column("Audit"), column("Parameters")],
                [
                    [
                        cell_of(a["label"]),
                        cell_of(", ".join(f"{k} = {plain(v)}" for k, v in a["parameters"].items()) or NONE),
                    ]
                    for a in document["audits"]
                ],
                widths=[1.2, 3],
            )
        )
    return blocks


def _evidence(document: dict[str, Any]) -> list[Block]:
    evidence = document["evidence"]
    return [
        fact_list([("SHA-256 over all evidence", [span(evidence["sha256"], "code")])]),
        table_block(
            "Evidence files. A file whose hash differs is not the one that this report was made from.",
            [column("File"), column("SHA-256")],
            [[cell_of(file["path"], "code"), cell_of(file["sha256"], "code")] for file in evidence["files"]],
            widths=[1, 1.35],
        )
        if evidence["files"]
        else paragraph("No evidence file is listed."),
        heading("Sign-off"),
        {
            "kind": "sign_off",
            "columns": ["Role", "Name", "Date", "Decision and signature"],
            "rows": ["Prepared by", "Reviewed by", "Approved by"],
        },
    ]


# --- descriptions of figures, for those who do not see them ----------------------------------------------


def _describe_epsilons(audits: Sequence[dict[str, Any]]) -> str:
    said = "; ".join(
        f"{a['label']}: claimed {number(a['epsilon']['claimed'])}, "
        f"{'accounted ' + number(a['epsilon']['accounted']) if has_ledger(a) else 'no ledger to account'}, "
        f"measured {at_least(a['epsilon']['measured'])}"
        for a in audits
    )
    return f"Dot plot of epsilon. {said}."


def _describe_regret(title: str, cells: Sequence[dict[str, Any]], rounds: int) -> str:
    ends = "; ".join(f"{plots.curve_name(cell, cells)}: {number(float(cell['final_mean']))}" for cell in cells)
    return f"Regret of {title} against rounds. After {number(rounds)} rounds: {ends}."


# --- names ----------------------------------------------------------------------------------------------


def _family(cell: dict[str, Any]) -> tuple[str, str | None, str]:
    return cell["algorithm"], cell["calibration"], cell["privacy_model"]


def _family_name(family: tuple[str, str | None, str] | None) -> str:
    if family is None:
        return "the algorithms without privacy"
    algorithm, calibration, model = family
    return algorithm + (f", calibration {calibration}" if calibration else "") + f" ({model} trust)"


def _role_number(values: dict[str, Any], role: str) -> str:
    return at_least(values[role]) if role == "measured" else number(values[role])


def _main_number(main: dict[str, Any], role: str, *, names: bool) -> str:
    value = main[role]
    if value is None or not names:
        return _role_number(main, role)
    sign = "≥" if role == "measured" else "="
    return f"{symbol_of(main['quantity'])} {sign} {number(value)}"
