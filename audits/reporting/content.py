"""What a report says: sections of plain blocks, from which both the web page and the PDF are set.

A block is a dictionary with a `kind`: text, heading, list, facts, table, figure, code, sign_off. Running text
is a list of spans `{"text", "style"}`. Everything is data: a template never interprets what a user wrote.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from audits.reporting import plots
from audits.reporting.document import broken_order
from audits.reporting.numbers import NONE, number

Block = dict[str, Any]

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
_VIEWS = {
    "transcript": (
        "every noisy value that was released, and every action",
        "it also knows all other records (the strongest adversary)",
    ),
    "actions": (
        "the actions that other users received, and nothing else",
        "it also knows all other records (weaker than one who sees the releases)",
    ),
    "one_run": (
        "one run that holds many planted records",
        "the planted records were chosen independently of one another",
    ),
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
        ("measurement", "3  What the audit did and measured", _measurement),
        ("controls", "4  Planted faults", _controls),
        ("structural", "5  Audit without statistics", _structural),
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
        return [_text("This report holds no audit. It makes no statement about privacy.")]
    deltas = {audit["delta"] for audit in audits}
    one_delta = len(deltas) == 1
    at = f"ε at δ = {number(next(iter(deltas)))}" if one_delta else "ε at δ"
    columns = [_column("Algorithm"), _column("Claim")]
    groups = [("", 2)]
    if not one_delta:
        columns.append(_column("δ", right=True))
        groups[0] = ("", 3)
    for title in (at, "µ"):
        columns += [_column(role, right=True, role=role) for role in plots.ROLES]
        groups.append((title, 3))
    columns += [_column("Faults caught", right=True), _column("Verdict")]
    groups.append(("", 2))
    rows = []
    for audit in audits:
        row = [_cell(audit["label"]), _cell(audit["claim"]["statement"])]
        row += [] if one_delta else [_cell(number(audit["delta"]))]
        row += [_cell(_role_number(audit[name], role)) for name in ("epsilon", "mu") for role in plots.ROLES]
        caught = sum(control["caught"] for control in audit["controls"])
        row += [_cell(f"{caught}/{len(audit['controls'])}"), _verdict(audit["verdict"])]
        rows.append(row)
    blocks = [
        _table(
            "Verdicts. Claimed: what the source promises. Accounted: what our accountant derives. "
            "Measured: a lower bound "
            f"found by attack. A dash ({NONE}): no finite number.",
            columns,
            rows,
            groups=groups,
            widths=[1.9, 1.9] + ([] if one_delta else [0.8]) + [1.3] * 6 + [1.0, 2.3],
        )
    ]
    for start in range(0, len(audits), 10):
        part = audits[start : start + 10]
        blocks.append(
            _figure(
                "The three epsilons of each audit. The claim must be at least what is accounted, and "
                "that at least what "
                "is measured: the marks of one audit must not move right from top to bottom.",
                [(plots.three_epsilons(part), _describe_epsilons(part))],
                size="medium",
            )
        )
    blocks += [
        _heading("How to read the numbers"),
        _facts(
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
                (
                    "Measured",
                    "A statistical lower bound: with the stated confidence the true privacy loss is at "
                    "least this. A value below the claim is expected; a value above it refutes the claim.",
                ),
                (
                    "Planted fault",
                    "A deliberately broken copy of the algorithm. An audit that misses it has too little "
                    "power, and then no PASS is given.",
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
        shared, table = _shared_facts(
            audits,
            [
                ("Unit of privacy", lambda a: a["unit"]),
                ("Neighboring relation", lambda a: a["relation"]),
                ("Trust model", lambda a: _TRUST.get(a["privacy_model"], a["privacy_model"])),
                ("The adversary sees", lambda a: a["view_of_adversary"]),
                ("Claim", lambda a: a["claim"]["statement"]),
                ("Claimed µ", lambda a: number(a["claim"]["mu"])),
                ("Proved in", lambda a: a["claim"]["theorem"]),
                ("Source", lambda a: a["claim"]["source"]),
                ("δ", lambda a: number(a["delta"])),
            ],
            "Claims, as far as they differ.",
        )
        facts += shared
        blocks += table
    else:
        blocks.append(_text("No privacy claim was audited."))
    blocks = ([_facts(facts)] if facts else []) + blocks
    blocks += [
        _heading("Data"),
        _facts(
            [
                ("Environment", [_span(environment["name"], "code")]),
                ("Data", environment["description"]),
                ("Estimator", environment["estimator"]),
                ("Horizon", f"{number(environment['horizon'])} rounds"),
            ]
        ),
    ]
    if environment["actions"]:
        means = environment["means"]
        columns = [_column("Action")] + ([_column("Mean reward", right=True)] if means else [])
        rows = [
            [_cell(action)] + ([_cell(number(means[index]))] if means else [])
            for index, action in enumerate(environment["actions"])
        ]
        blocks.append(_table("Actions" + (" and their mean reward." if means else "."), columns, rows, narrow=True))
    return blocks


def _mechanism(document: dict[str, Any]) -> list[Block]:
    audits = document["audits"]
    if not audits:
        return [_text("No audit, hence no accounting, in this report.")]
    shared, table = _shared_facts(
        audits,
        [
            ("Accountant", lambda a: a["accountant"]["method"]),
            ("Derivation", lambda a: a["accountant"]["text"]),
            ("Noise source", lambda a: a["accountant"]["noise_source"]),
        ],
        "Accountants, as far as they differ.",
    )
    blocks = ([_facts(shared)] if shared else []) + table
    formulas = list(dict.fromkeys(a["accountant"]["formula"] for a in audits))
    for formula in formulas:
        holders = [a["label"] for a in audits if a["accountant"]["formula"] == formula]
        of = "" if len(formulas) == 1 else f" of {', '.join(holders)}"
        blocks += [_text(f"The composition{of}:"), _code(formula)]
    rows = [
        [
            _cell(audit["label"]),
            _cell(event["event"]),
            _cell(number(event["noise_multiplier"])),
            _cell(number(event["mu"]) if event["epsilon"] is None else f"ε = {number(event['epsilon'])}"),
            _cell(number(event["count"])),
            _cell(number(audit["mu"]["accounted"])),
            _cell(number(audit["epsilon"]["accounted"])),
        ]
        for audit in audits
        for event in audit["accountant"]["events"]
    ]
    blocks.append(
        _table(
            "What the worst record pays for. Noise multiplier: scale of the noise over the sensitivity. "
            "The last two columns "
            "are the composition of all rows of one audit.",
            [
                _column("Audit"),
                _column("Noise"),
                _column("Noise multiplier", right=True),
                _column("µ or ε of one", right=True),
                _column("Releases", right=True),
                _column("µ composed", right=True),
                _column("ε composed", right=True),
            ],
            rows,
            widths=[2.6, 1.4, 1.3, 1.1, 1.1, 1.2, 1.2],
        )
    )
    blocks.append(
        _text(
            "From µ to ε: a µ-Gaussian private mechanism is (ε, δ)-differentially private for every ε ≥ "
            "0 with the δ below, "
            "where Φ is the distribution function of N(0, 1)."
        )
    )
    blocks.append(_code("δ = Φ(−ε/µ + µ/2) − exp(ε) Φ(−ε/µ − µ/2)"))
    return blocks


def _measurement(document: dict[str, Any]) -> list[Block]:
    audits = document["audits"]
    if not audits:
        return [_text("No audit was run.")]
    blocks: list[Block] = [
        _text(
            "The algorithm was replayed many times on a data set and on a neighbor that differs in one "
            "record. An attack "
            "scored each replay and guessed from which of the two it came. If its two error rates are "
            "lower than the claim "
            "allows, the claim is refuted; from their upper confidence limits follows a lower bound on "
            "the privacy loss."
        )
    ]
    shared, table = _shared_facts(
        audits,
        [
            ("Replayed data", lambda a: a["measurement"]["table"]),
            ("Replays per side", lambda a: number(a["measurement"]["replays_per_side"])),
            ("Confidence", lambda a: f"{number(100 * a['measurement']['confidence'])} %"),
            ("Seed", lambda a: str(a["measurement"]["seed"])),
            ("Validity", lambda a: a["measurement"]["text"]),
        ],
        "Set-up of the audits, as far as it differs.",
    )
    blocks += ([_facts(shared)] if shared else []) + table
    rows = [
        [
            _cell(audit["label"]),
            _cell(f"{bound['view']}: {bound['attack']}"),
            _cell(bound["neighbor"]),
            _cell(f"{number(bound['false_positives'])} of {number(bound['n_negative'])}"),
            _cell(f"{number(bound['false_negatives'])} of {number(bound['n_positive'])}"),
            _cell("never" if bound["threshold"] is None else number(bound["threshold"])),
            _cell(_at_least(bound["mu_lower"])),
            _cell(_at_least(bound["epsilon_lower"])),
        ]
        for audit in audits
        for bound in audit["measurement"]["bounds"]
    ]
    blocks.append(
        _table(
            "Lower bounds, one a neighbor and view. False positives: replays of the data set taken for "
            "the neighbor. False "
            "negatives: replays of the neighbor taken for the data set.",
            [
                _column("Audit"),
                _column("View: attack"),
                _column("Neighbor"),
                _column("False positives", right=True),
                _column("False negatives", right=True),
                _column("Threshold", right=True),
                _column("µ", right=True, role="measured"),
                _column("ε at δ", right=True, role="measured"),
            ],
            rows,
            widths=[2, 2.3, 2, 1.5, 1.5, 1.2, 1.1, 1.1],
        )
    )
    blocks.append(_heading("What each bound assumes"))
    converted = [audit["label"] for audit in audits if _is_converted(audit)]
    seen = list(dict.fromkeys(b["view"] for a in audits for b in a["measurement"]["bounds"]))
    facts: list[tuple[str, Any]] = []
    for view in seen:
        sees, assumes = _VIEWS.get(view, ("what its name says", "what the attack in the table uses"))
        facts.append((f"View “{view}”", f"Sees {sees}. Allows for: {assumes}."))
    facts += [
        (
            "µ",
            "Least µ of a Gaussian private mechanism that allows errors as rare as those counted. "
            "Assumes that the promise tested is a Gaussian one.",
        ),
        (
            "ε at δ",
            "Least ε of an (ε, δ)-private mechanism that allows errors as rare as those counted. Assumes "
            "nothing about the mechanism, and is therefore usually the smaller one.",
        ),
        (
            "Both",
            "Replays are independent, and the threshold was not chosen on the replays that are counted.",
        ),
    ]
    if converted:
        facts.append(
            (
                "ε at a glance",
                "The measured ε in the table of verdicts is larger than every ε above"
                + ("" if len(converted) == len(audits) else f" for {', '.join(converted)}")
                + ": it is not one of these bounds. Converted from the measured µ (section 2), it "
                "assumes what µ assumes.",
            )
        )
    blocks.append(_facts(facts))
    curves = [audit for audit in audits if audit["tradeoff"] is not None]
    if curves:
        blocks.append(_heading("Trade-off between the two errors"))
        blocks.append(
            _text(
                "In the shaded region the claim says that no attack can be. A curve on the dotted "
                "diagonal means that the "
                "attack does no better than guessing. Axes are shortened where the claim is weak."
            )
        )
        blocks.append(
            _figure(
                "Errors of the sharpest attack of each audit, the limit that the claim sets, and the "
                "curve of the measured "
                "lower bound on µ.",
                [(plots.tradeoff_curve(audit), _describe_tradeoff(audit)) for audit in curves],
                titles=[audit["label"] for audit in curves],
                size="small",
            )
        )
    return blocks


def _controls(document: dict[str, Any]) -> list[Block]:
    audits = document["audits"]
    if not any(audit["controls"] for audit in audits):
        return [_text("No planted fault was tried. Without them an audit has no proven power, and no PASS is given.")]
    blocks = [
        _text(
            "Each fault was planted into a copy of the algorithm, which was then audited with the same "
            "effort. An audit that "
            "does not catch every one of its faults earns no PASS, whatever it measured."
        )
    ]
    faults = {(c["name"], c["fault"], ", ".join(c["expected"])): None for a in audits for c in a["controls"]}
    blocks.append(
        _table(
            "The planted faults.",
            [_column("Name"), _column("What is wrong on purpose"), _column("Checks that should catch it")],
            [[_cell(name), _cell(fault), _cell(expected or NONE)] for name, fault, expected in faults],
            widths=[2, 4.5, 2.2],
        )
    )
    blocks.append(
        _table(
            "Whether they were caught. µ measured: the lower bound found on the faulty copy.",
            [
                _column("Audit"),
                _column("Fault"),
                _column("Caught by"),
                _column("µ measured", right=True, role="measured"),
                _column("µ claimed", right=True, role="claimed"),
                _column("Outcome"),
            ],
            [
                [
                    _cell(audit["label"]),
                    _cell(control["name"]),
                    _cell(", ".join(control["caught_by"]) or NONE),
                    _cell(_at_least(control["mu_measured"])),
                    _cell(number(audit["mu"]["claimed"])),
                    _badge("caught", "good") if control["caught"] else _badge("MISSED", "bad"),
                ]
                for audit in audits
                for control in audit["controls"]
            ],
            widths=[2.3, 2, 2.2, 1.3, 1.2, 1.2],
        )
    )
    return blocks


def _structural(document: dict[str, Any]) -> list[Block]:
    audits = document["audits"]
    if not audits:
        return [_text("No audit was run.")]
    return [
        _text(
            "A run on one data set is recorded, and repeated on a neighbor with the same noisy outputs. "
            "Every release must then "
            "come at the same time; its exact value must not change if the replaced record lies outside "
            "what the ledger wrote "
            "down, and must change by at most the sensitivity if inside. This test has no sampling "
            "error: one counterexample "
            "refutes the code. Pairs are searched, not exhausted."
        ),
        _table(
            "Counterexamples.",
            [
                _column("Audit"),
                _column("Pairs tried", right=True),
                _column("Outcome"),
                _column("Counterexample"),
            ],
            [
                [
                    _cell(audit["label"]),
                    _cell(number(audit["structural"]["examples"])),
                    _badge("none found", "good" if audit["structural"]["examples"] else "unsure")
                    if audit["structural"]["counterexample"] is None
                    else _badge("FOUND", "bad"),
                    _cell(audit["structural"]["counterexample"] or NONE),
                ]
                for audit in audits
            ],
            widths=[2.4, 1.1, 1.3, 3.6],
        ),
    ]


def _reasons(document: dict[str, Any]) -> list[Block]:
    audits = document["audits"]
    blocks: list[Block] = []
    if audits:
        rows = []
        for audit in audits:
            order = broken_order(audit)
            rows.append(
                [
                    _cell(audit["label"]),
                    _verdict(audit["verdict"]),
                    {"lines": audit["reasons"] or [NONE]},
                    _cell("; ".join(order)) if order else _cell("holds"),
                ]
            )
        blocks.append(
            _table(
                "Verdicts and their reasons. Order: whether claimed ≥ accounted ≥ measured, recomputed "
                "by this report from the "
                "numbers above; a number that does not exist is not compared.",
                [_column("Audit"), _column("Verdict"), _column("Reasons"), _column("Order")],
                rows,
                widths=[2.2, 1.6, 4, 2.4],
            )
        )
        seen = [v for v in _VERDICTS if any(a["verdict"] == v for a in audits)]
        blocks.append(_facts([(v, _VERDICTS[v].capitalize() + ".") for v in seen]))
    blocks += [
        _heading("What a verdict does not mean"),
        _list(
            [
                "A lower bound is evidence, not proof. PASS says that these attacks, on these neighbors, "
                "with this many replays, did not refute the claim. A proof is in the source; the audit "
                "tests that the code does what was proved.",
                "The bounds hold for the data sets and neighbors that were replayed. A worse pair may exist.",
                "The verdict is about the algorithm as it was run here: changed parameters, code or data need a new audit.",
                "With many audits, some bound may by chance exceed the truth: each audit holds at its "
                "own confidence, not all audits together.",
            ]
        ),
        _heading("Residual risks"),
        _list(
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
        return [_text("No benchmark was run: this report says nothing about utility.")]
    cells, grid = benchmark["cells"], benchmark["grid"]
    colors = plots.level_colors([c["epsilon"] for c in cells if c["epsilon"] is not None])
    top = max((max(cell["high"]) for cell in cells), default=1.0)
    twins = [cell for cell in cells if cell["epsilon"] is None]
    families = list(dict.fromkeys(_family(cell) for cell in cells if cell["epsilon"] is not None))
    none: list[Any] = [None]
    blocks: list[Block] = [
        _text(
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
        blocks.append(_figure(f"Regret of {title}. Dashed: not private.", images, size="large"))
    twin = twins[0]["final_mean"] if len(twins) == 1 and twins[0]["final_mean"] > 0 else None
    columns = [
        _column("Cell"),
        _column("Trust"),
        _column("ε", right=True),
        _column("µ", right=True),
        _column("Runs", right=True),
        _column("Final regret", right=True),
        _column("Interval", right=True),
    ] + ([_column("Times the twin", right=True)] if twin else [])
    rows = [
        [
            _cell(cell["label"]),
            _cell(cell["privacy_model"]),
            _cell(number(cell["epsilon"])),
            _cell(number(cell["mu"])),
            _cell(number(cell["replications"])),
            _cell(number(float(cell["final_mean"]))),
            _cell(f"{number(float(cell['final_low']))} to {number(float(cell['final_high']))}"),
        ]
        + ([_cell(f"{cell['final_mean'] / twin:.2f}")] if twin else [])
        for cell in cells
    ]
    note = " Times the twin: final regret over that of the same task without privacy." if twin else ""
    blocks.append(
        _table(
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
        blocks += [_heading("Commands"), _code("\n".join(document["commands"]))]
    if document["spec"].strip():
        blocks += [_heading("Specification"), _code(document["spec"].rstrip("\n"))]
    blocks.append(_heading("Seeds and software"))
    blocks.append(
        _table(
            "Seeds.",
            [_column("Name"), _column("Value")],
            _pairs(document["seeds"]),
            narrow=True,
            widths=[1, 3],
        )
    )
    blocks.append(
        _table(
            "Software.",
            [_column("Package"), _column("Version")],
            _pairs(document["software"]),
            narrow=True,
            widths=[1, 3],
        )
    )
    if document["audits"]:
        blocks.append(
            _table(
                "Parameters of the audited algorithms.",
                [_column("Audit"), _column("Parameters")],
                [
                    [
                        _cell(a["label"]),
                        _cell(", ".join(f"{k} = {_plain(v)}" for k, v in a["parameters"].items()) or NONE),
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
        _facts([("SHA-256 over all evidence", [_span(evidence["sha256"], "code")])]),
        _table(
            "Evidence files. A file whose hash differs is not the one that this report was made from.",
            [_column("File"), _column("SHA-256")],
            [[_cell(file["path"], "code"), _cell(file["sha256"], "code")] for file in evidence["files"]],
            widths=[1, 1.35],
        )
        if evidence["files"]
        else _text("No evidence file is listed."),
        _heading("Sign-off"),
        {
            "kind": "sign_off",
            "columns": ["Role", "Name", "Date", "Decision and signature"],
            "rows": ["Prepared by", "Reviewed by", "Approved by"],
        },
    ]


# --- descriptions of figures, for those who do not see them ----------------------------------------------


def _describe_epsilons(audits: Sequence[dict[str, Any]]) -> str:
    said = "; ".join(
        f"{a['label']}: claimed {number(a['epsilon']['claimed'])}, accounted "
        f"{number(a['epsilon']['accounted'])}, "
        f"measured {_at_least(a['epsilon']['measured'])}"
        for a in audits
    )
    return f"Dot plot of epsilon. {said}."


def _describe_tradeoff(audit: dict[str, Any]) -> str:
    return (
        f"Trade-off curves of {audit['label']}: false-negative against false-positive rate. Claimed µ "
        f"{number(audit['mu']['claimed'])}; measured µ {_at_least(audit['tradeoff']['mu_lower'])}."
    )


def _describe_regret(title: str, cells: Sequence[dict[str, Any]], rounds: int) -> str:
    ends = "; ".join(f"{plots.curve_name(cell, cells)}: {number(float(cell['final_mean']))}" for cell in cells)
    return f"Regret of {title} against rounds. After {number(rounds)} rounds: {ends}."


# --- blocks ----------------------------------------------------------------------------------------------


def _shared_facts(
    audits: Sequence[dict[str, Any]],
    asked: Sequence[tuple[str, Callable[[dict[str, Any]], str]]],
    caption: str,
) -> tuple[list[tuple[str, Any]], list[Block]]:
    """What all audits share, once; what differs, as a table with one row an audit (long texts by groups)."""
    shared: list[tuple[str, list[str]]] = []
    differing: list[tuple[str, list[str]]] = []
    for term, get in asked:
        values = [get(audit) for audit in audits]
        (shared if len(set(values)) == 1 else differing).append((term, values))
    facts: list[tuple[str, Any]] = [(term, values[0]) for term, values in shared]
    short = [(term, values) for term, values in differing if max(map(len, values)) <= 120]
    for term, values in differing:
        if (term, values) in short:
            continue
        for value in dict.fromkeys(values):
            holders = [a["label"] for a, v in zip(audits, values, strict=True) if v == value]
            facts.append((f"{term} ({', '.join(holders)})", value))
    if not short:
        return facts, []
    columns = [_column("Audit")] + [_column(term, right=len(max(v, key=len)) <= 8) for term, v in short]
    rows = [[_cell(audit["label"])] + [_cell(values[index]) for _, values in short] for index, audit in enumerate(audits)]
    widths = [1.4] + [min(3.0, max(0.8, max(map(len, values)) / 14)) for _, values in short]
    return facts, [_table(caption, columns, rows, widths=widths)]


def _family(cell: dict[str, Any]) -> tuple[str, str | None, str]:
    return cell["algorithm"], cell["calibration"], cell["privacy_model"]


def _family_name(family: tuple[str, str | None, str] | None) -> str:
    if family is None:
        return "the algorithms without privacy"
    algorithm, calibration, model = family
    return algorithm + (f", calibration {calibration}" if calibration else "") + f" ({model} trust)"


def _pairs(mapping: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [[_cell(str(key)), _cell(_plain(value), "code")] for key, value in mapping.items()]


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return number(value)
    return json.dumps(value, ensure_ascii=False)


def _is_converted(audit: dict[str, Any]) -> bool:
    direct = [bound["epsilon_lower"] for bound in audit["measurement"]["bounds"] if bound["epsilon_lower"] is not None]
    measured = audit["epsilon"]["measured"]
    return measured is not None and audit["mu"]["measured"] is not None and measured > max(direct, default=0) * 1.0001


def _at_least(value: float | None) -> str:
    return "none" if value is None else f"≥ {number(value)}"


def _role_number(values: dict[str, float | None], role: str) -> str:
    return _at_least(values[role]) if role == "measured" else number(values[role])


def _span(text: str, style: str = "") -> dict[str, str]:
    return {"text": text, "style": style}


def _spans(content: str | list[dict[str, str]]) -> list[dict[str, str]]:
    return [_span(content)] if isinstance(content, str) else content


def _cell(text: str, style: str = "") -> dict[str, Any]:
    return {"spans": [_span(text, style)]}


def _badge(text: str, tone: str) -> dict[str, Any]:
    return {"badge": text, "tone": tone}


def _verdict(verdict: str) -> dict[str, Any]:
    return _badge(verdict, {"PASS": "good", "FAIL": "bad"}.get(verdict, "unsure"))


def _column(title: str, *, right: bool = False, role: str = "") -> dict[str, Any]:
    return {"title": title, "align": "right" if right else "left", "role": role}


def _text(text: str) -> Block:
    return {"kind": "text", "spans": _spans(text)}


def _heading(text: str) -> Block:
    return {"kind": "heading", "text": text}


def _list(items: Sequence[str]) -> Block:
    return {"kind": "list", "items": list(items)}


def _facts(pairs: Sequence[tuple[str, Any]]) -> Block:
    return {"kind": "facts", "pairs": [{"term": term, "spans": _spans(content)} for term, content in pairs]}


def _code(text: str) -> Block:
    return {"kind": "code", "text": text}


def _table(
    caption: str,
    columns: list[dict[str, Any]],
    rows: list[list[dict[str, Any]]],
    *,
    groups: list[tuple[str, int]] | None = None,
    widths: list[float] | None = None,
    narrow: bool = False,
) -> Block:
    words = [json.dumps(cell, ensure_ascii=False) for row in rows for cell in row]
    return {
        "kind": "table",
        "caption": caption,
        "columns": columns,
        "rows": rows,
        "groups": [{"title": title, "span": span} for title, span in groups or []],
        "widths": widths or [1.0] * len(columns),
        "narrow": narrow,
        "together": len(rows) <= 14 and sum(map(len, words)) < 6000,
        "tall": max(map(len, words), default=0) > 600,
    }


def _figure(caption: str, images: Sequence[tuple[str, str]], *, size: str, titles: Sequence[str] | None = None) -> Block:
    names = titles or [""] * len(images)
    return {
        "kind": "figure",
        "caption": caption,
        "size": size,
        "images": [{"svg": svg, "alt": alt, "title": name} for (svg, alt), name in zip(images, names, strict=True)],
    }
