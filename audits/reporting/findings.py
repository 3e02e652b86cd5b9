"""What the report says of an audit's own work: its bounds, its power, its counterexamples and the audit of the noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bandana.audits.reporting import audit_plots
from bandana.audits.reporting.blocks import (
    Audit,
    Block,
    at_least,
    badge,
    cell_of,
    column,
    fact_list,
    figure_block,
    heading,
    lines_of,
    paragraph,
    shared_facts,
    table_block,
)
from bandana.audits.reporting.document import has_ledger
from bandana.audits.reporting.numbers import DIVERGENCE, EPSILON, MU, NONE, PURE, RHO, kind_of, name_of, number

VIEWS = {
    "transcript": "Sees every noisy value that was released, and every action; it also knows all other records. No "
    "adversary sees more.",
    "actions": "Sees the actions that the other users received, and nothing else; it also knows all other records.",
    "report": "Sees the message that one user sends; under local privacy nobody else is trusted.",
    "one_run": "Sees a single run that holds many planted records, each put in or left out by a fair coin of its own.",
}
"""What the adversary of each view sees."""

METHODS = {
    "mu-curve": "Many thresholds on the score at once, weighted into one contrast that every µ limits: the tangents of the "
    "trade-off curve (Dong, Roth, Su 2022).",
    "mu-band": "All thresholds on the score at once, by a confidence band around both kinds of errors (Massart 1990).",
    "mu-threshold": "One threshold, chosen on other replays, and exact limits of its two error rates (Nasr et al. 2023).",
    "epsilon-coins": "A fair coin decides from which data set each score comes; under the claim nobody guesses the coins "
    "right so often. The test is exact (Kairouz, Oh, Viswanath 2015; Steinke, Nasr, Jagielski 2023).",
    "epsilon-e-process": "A bet against the claim, which would make nobody rich if it held; it may be watched at any time "
    "(Grünwald, de Heide, Koolen 2024).",
    "pure-event": "One event, found on other replays, and exact limits of its two probabilities (Bichsel et al. 2021).",
    "hockey-stick": "The mass by which one law exceeds exp(ε) times the other (Balle and Wang 2018).",
    "renyi": "Two functions of the score, learned on other replays, whose means differ by no more than the divergence lets "
    "them (Birrell et al. 2021).",
    "rho": "The bound on the Rényi divergence at several orders, each over its order (Birrell et al. 2021).",
    "one-run-mu": "How many of the surest guesses, which canaries were in, are right: no more than the trade-off curve of µ "
    "lets them (Mahloujifar, Melis, Chaudhuri 2024).",
    "one-run-epsilon": "How many of the surest guesses, which canaries were in, are right: no more than as many coins of "
    "bias exp(ε)/(1 + exp(ε)), but for δ (Steinke, Nasr, Jagielski 2023).",
    "one-run-sequential": "A bet on each canary's coin before the next is tossed (Grünwald, de Heide, Koolen 2024). Assumes "
    "a release of its own for each canary, private given all before, as a local promise is.",
    "one-run-sequential-mu": "The same for µ (Waudby-Smith and Ramdas 2023).",
}
"""What each bound of `bandana.audits.bounds.methods` and `bandana.audits.replays.one_run` does, in one line."""

_TESTS = {
    MU: "Assumes that the promise is a Gaussian-DP one, and is then the sharpest.",
    EPSILON: "Assumes nothing of the mechanism, and tests any promise of an ε at this δ. It is usually smaller than the ε "
    "to which the bound on µ converts.",
    PURE: "Assumes nothing of the mechanism, and tests a promise of pure differential privacy.",
    DIVERGENCE: "Assumes nothing of the mechanism, and tests a promise of Rényi differential privacy at this order.",
    RHO: "Assumes nothing of the mechanism, and tests a promise of zero-concentrated differential privacy.",
}
_CHECKS = {
    "sampling": "Replays and lower bounds, as in section 3: what is measured must exceed the limit, the smaller of what is "
    "claimed and what is accounted.",
    "structural": "The audit without statistics (section 5) must find a counterexample.",
    "noise": "The audit of the noise (section 5) must find that it is not what is declared.",
}
KINDS = {
    "decision": "The two runs saw the same released values and parted all the same: something was decided from data that "
    "had not been released.",
    "span": "A value moved although its release declares not to read the record: what it tells of that user is not paid.",
    "sensitivity": "One record moves a value further than the noise was made for, so that the noise hides less than is paid "
    "for.",
    "sequence": "Several releases are paid for once, as one vector, and together they move further than that vector may.",
    "not a number": "A value is no number, so that nothing bounds what it tells.",
    "no noise": "A value leaves without any noise: it tells all that it reads.",
    "book": "One record pays for more releases than the claim allows, together.",
}
"""What each kind of counterexample means (`bandana.audits.searches.counterexample`)."""
_MOST_ROWS = 24
_LONGEST_TITLE = 110


def factor_of(factor: float | None) -> str:
    """The smallest fault that an audit would have caught, as a factor."""
    return "none" if factor is None else f"× {number(factor)}"


# --- 3: what was measured --------------------------------------------------------------------------------


def measurement(document: dict[str, Any]) -> list[Block]:
    """How each audit replayed, the strongest bounds, and what they assume."""
    audits = document["audits"]
    if not audits:
        return [paragraph("No audit was run.")]
    said: list[Block] = [
        paragraph(
            "The algorithm was replayed many times on a data set and on a neighbor that differs in one record. An attack "
            "gave each replay a score: the larger, the likelier the neighbor. The further apart the scores of the two data "
            "sets lie, the larger the privacy loss must be; a lower bound says how large, at least, after what chance can "
            "do. If it exceeds the claim, the claim is refuted."
        )
    ]
    shared, differing = shared_facts(
        audits,
        [
            ("Replayed data", lambda a: a["measurement"]["table"]),
            ("Replays per side", lambda a: number(a["measurement"]["replays_per_side"])),
            ("Confidence", lambda a: _confidence(a)),
            ("Seed", lambda a: str(a["measurement"]["seed"])),
            ("Validity", lambda a: a["measurement"]["text"]),
        ],
        "Set-up of the audits, as far as it differs.",
    )
    said += ([fact_list(shared)] if shared else []) + differing
    said += [
        heading("Lower bounds"),
        paragraph(
            "A bound was taken for each budget, view, quantity and neighbor. Shown is the strongest of each budget, view "
            "and quantity; all of them stand in the JSON file of this report. The failure probability is split between all, "
            "so that those shown were not picked at the price of their confidence."
        ),
    ]
    said += [block for audit in audits for block in _bounds(audit)]
    said += [heading("What each bound assumes"), fact_list(_assumptions(audits))]
    curves = [audit for audit in audits if audit["tradeoff"] is not None]
    if curves:
        said += [
            heading("Trade-off between the two errors"),
            paragraph(
                "In the shaded region the claim says that no attack can be. A curve on the dotted diagonal means that the "
                "attack does no better than guessing. Axes are shortened where the claim is weak. Where the claim is so "
                "strong that all curves lie on the diagonal, the test budget decides."
            ),
            figure_block(
                "Errors of the sharpest attack of each audit at its claimed budget, the limit that the claim sets, and the "
                "curve of the measured lower bound on µ.",
                [(audit_plots.tradeoff_curve(audit), _describe_tradeoff(audit)) for audit in curves],
                titles=[audit["label"] for audit in curves],
                size="small",
            ),
        ]
    return said


def _confidence(audit: Audit) -> str:
    return f"{number(100 * audit['measurement']['confidence'])} %"


def strongest(bounds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The largest of the bounds of each budget, view and quantity, in the order in which these were first looked at."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for bound in bounds:
        key = (bound["budget"], bound["view"], bound["quantity"])
        if key not in found or (bound["lower"] or 0.0) > (found[key]["lower"] or 0.0):
            found[key] = bound
    return list(found.values())


def _bounds(audit: Audit) -> list[Block]:
    taken = audit["measurement"]["bounds"]
    if not taken:
        return [paragraph(f"{audit['label']}: no bound was taken.")]
    shown = strongest(taken)
    has_budgets = any(bound["budget"] == "test" for bound in taken)
    columns = [
        *([column("Budget")] if has_budgets else []),
        column("View"),
        column("Quantity"),
        column("measured", right=True, role="measured"),
        column("claimed", right=True, role="claimed"),
        column("Neighbor"),
        column("Attack; method"),
        column("Replays", right=True),
    ]
    rows = [
        [
            *([cell_of(bound["budget"])] if has_budgets else []),
            cell_of(bound["view"]),
            cell_of(name_of(bound["quantity"])),
            _compared(bound),
            cell_of(number(bound["claimed"])),
            cell_of(bound["neighbor"]),
            cell_of(f"{bound['attack']}; {bound['method']}"),
            cell_of(_sizes(bound)),
        ]
        for bound in shown
    ]
    all_of = f"the one bound taken holds with {_confidence(audit)} confidence"
    if len(taken) > 1:
        all_of = f"the strongest of each kind, of {len(taken)} bounds; all {len(taken)} hold together with "
        all_of += f"{_confidence(audit)} confidence"
    return [
        table_block(
            f"{audit['label']}: {all_of}.",
            columns,
            rows,
            widths=[*([1.1] if has_budgets else []), 1.4, 1.5, 1.2, 1.1, 2.8, 2.2, 1.4],
        )
    ]


def _compared(bound: dict[str, Any]) -> dict[str, Any]:
    lower, claimed = bound["lower"], bound["claimed"]
    is_above = lower is not None and claimed is not None and lower > claimed
    return badge(at_least(lower), "bad") if is_above else cell_of(at_least(lower))


def _sizes(bound: dict[str, Any]) -> str:
    data, neighbor = bound["n_data"], bound["n_neighbor"]
    if bound["view"] == "one_run":
        return f"1 run, {number(data + neighbor)} canaries"
    return f"2 × {number(data)}" if data == neighbor else f"{number(data)} + {number(neighbor)}"


def _assumptions(audits: list[Audit]) -> list[tuple[str, Any]]:
    """A line for each view, quantity and method that was used."""
    taken = [bound for audit in audits for bound in audit["measurement"]["bounds"]]
    facts: list[tuple[str, Any]] = [(f"View “{view}”", VIEWS[view]) for view in _seen(taken, "view")]
    if any(bound["budget"] == "test" for bound in taken):
        facts.append(("Budget “test”", "The same algorithm with noise of another size, see section 4."))
    facts += [(f"A bound on {name_of(quantity)}", _TESTS[kind_of(quantity)]) for quantity in _seen(taken, "quantity")]
    facts += [
        (
            f"Method {name}",
            METHODS.get(
                name, "See its name in the package, module bandana.audits.bounds.methods or bandana.audits.replays.one_run."
            ),
        )
        for name in _seen(taken, "method")
    ]
    facts.append(("All of them", "Replays are independent of each other and made alike."))
    converted = [audit["label"] for audit in audits if _is_converted(audit)]
    if any(audit["epsilon"]["measured"] is not None for audit in audits):
        told = "The measured ε in the table of verdicts is the larger of two: the bound on ε at δ, and what the bound on µ "
        told += "converts to (section 2). "
        if converted:
            told += "It is the converted one" + ("" if len(converted) == len(audits) else f" for {', '.join(converted)}")
            told += ", and assumes what a bound on µ assumes."
        else:
            told += "Here it is the bound on ε itself, which assumes nothing."
        facts.append(("ε at a glance", told))
    return facts


def _seen(bounds: Sequence[dict[str, Any]], key: str) -> list[str]:
    return list(dict.fromkeys(bound[key] for bound in bounds))


def _is_converted(audit: Audit) -> bool:
    """Whether the measured epsilon is larger than each bound on it."""
    direct = [
        bound["lower"]
        for bound in audit["measurement"]["bounds"]
        if bound["budget"] == "claimed" and kind_of(bound["quantity"]) == EPSILON and bound["lower"] is not None
    ]
    measured = audit["epsilon"]["measured"]
    return measured is not None and audit["mu"]["measured"] is not None and measured > max(direct, default=0) * 1.0001


def _describe_tradeoff(audit: Audit) -> str:
    return (
        f"Trade-off curves of {audit['label']}: false-negative against false-positive rate. Claimed µ "
        f"{number(audit['claim']['mu'])}; measured µ {at_least(audit['tradeoff']['mu_lower'])}."
    )


# --- 4: power ---------------------------------------------------------------------------------------------


def power(document: dict[str, Any]) -> list[Block]:
    """The smallest fault that each audit would have seen, and what became of the planted ones."""
    audits = document["audits"]
    if not audits:
        return [paragraph("No audit was run.")]
    said: list[Block] = [
        heading("The smallest fault that would have been seen"),
        fact_list([(audit["label"], _power_of(audit)) for audit in audits]),
    ]
    if any(audit["measurement"]["test_budget"] is not None for audit in audits):
        said.append(
            paragraph(
                "Test budget: the scale of the noise is proportional to 1/µ (to 1/ε for pure privacy), so a fault of the "
                "noise, of the sensitivity or of what is charged is the same factor at every budget. At a tiny or huge one "
                "that factor hides in the sampling error; so the same code is audited once more, with noise for a budget of "
                "about 1, and the faults are planted there."
            )
        )
    said += _power_curves(audits)
    said.append(heading("Planted faults"))
    if not any(audit["controls"] for audit in audits):
        told = "No planted fault was tried. Without them an audit has no proven power, and no PASS is given."
        return [*said, paragraph(told)]
    said.append(
        paragraph(
            "Each fault was planted into a copy of the algorithm, which was then audited with the same effort. An audit "
            "that misses one of them, by a check that must see it, earns no PASS, whatever it measured."
        )
    )
    checks = dict.fromkeys(check for audit in audits for c in audit["controls"] for check in c["expected"] + c["caught_by"])
    said.append(fact_list([(f"Check “{check}”", _CHECKS[check]) for check in _CHECKS if check in checks]))
    faults = {(c["name"], c["fault"], _in_order(c["expected"])): None for a in audits for c in a["controls"]}
    said.append(
        table_block(
            "The planted faults.",
            [column("Name"), column("What is wrong on purpose"), column("Checks that must catch it")],
            [[cell_of(name), cell_of(fault), cell_of(expected or NONE)] for name, fault, expected in faults],
            widths=[2, 4.5, 2.2],
        )
    )
    said.append(
        table_block(
            "Whether they were caught. Measured: the largest lower bound found on the faulty copy, in the number that the "
            "claim is held against, at the budget where the faults were planted; sampling catches a fault if it exceeds the "
            "limit.",
            [
                column("Audit"),
                column("Fault"),
                column("Caught by"),
                column("Measured", right=True, role="measured"),
                column("Limit", right=True, role="claimed"),
                column("Outcome"),
            ],
            [
                [
                    cell_of(audit["label"]),
                    cell_of(control["name"]),
                    cell_of(_caught_by(control)),
                    cell_of(at_least(control["measured"])),
                    cell_of(number(control["limit"])),
                    badge("caught", "good") if control["caught"] else badge("MISSED", "bad"),
                ]
                for audit in audits
                for control in audit["controls"]
            ],
            widths=[2.1, 2.1, 2.4, 1.25, 1.1, 1.25],
        )
    )
    return said


def _power_curves(audits: Sequence[Audit]) -> list[Block]:
    drawn = [audit for audit in audits if audit["power"] is not None]
    if not drawn:
        return []
    told = list(dict.fromkeys(audit["power"]["text"] for audit in drawn))
    groups: dict[str, list[Audit]] = {}
    for audit in drawn:  # audits of one effort at one budget have the same curve
        curve, smallest = audit["power"], audit["measurement"]["smallest_factor"]
        rounded = [f"{value:.4g}" for value in (*curve["factors"], *curve["caught"], smallest or 0)]
        groups.setdefault(" ".join([curve["quantity"], *rounded]), []).append(audit)
    shared = list(groups.values())
    return [
        *[paragraph(text) for text in told],
        figure_block(
            "Power: of audits like this one, the share that would refute the claim, if the number that it is held against "
            "were this many times as large as claimed. The diamond marks the smallest factor that 95 % of them catch.",
            [(audit_plots.power_curve(alike[0]), _describe_power(alike)) for alike in shared],
            titles=[_title([audit["label"] for audit in alike]) for alike in shared],
            size="small",
        ),
    ]


def _title(labels: Sequence[str]) -> str:
    whole = ", ".join(labels)
    if len(labels) == 1 or len(whole) <= _LONGEST_TITLE:
        return whole
    return f"{labels[0]}, and {len(labels) - 1} other{'s' if len(labels) > 2 else ''} with the same curve"


def _describe_power(alike: Sequence[Audit]) -> str:
    """The curve in words, at the first factor that reaches each of a few shares."""
    curve = alike[0]["power"]
    points = list(zip(curve["factors"], curve["caught"], strict=True))
    reached = [(share, next((factor for factor, caught in points if caught >= share), None)) for share in (0.05, 0.5, 0.95)]
    said = ", ".join(f"{number(100 * share)} % at × {number(factor)}" for share, factor in reached if factor is not None)
    return (
        f"Power curve of {', '.join(audit['label'] for audit in alike)}: share of audits that catch, against the factor by "
        f"which {name_of(curve['quantity'])} exceeds the claim. "
        f"{'At least ' + said if said else 'Less than 5 % everywhere'}."
    )


def _power_of(audit: Audit) -> str:
    found, test = audit["measurement"], audit["measurement"]["test_budget"]
    main = audit["main"] if test is None else test["main"]
    name = name_of(main["quantity"])
    factor, at_claim = found["smallest_factor"], found["smallest_factor_at_claim"]
    if kind_of(main["quantity"]) in (MU, PURE):
        fault, faults = f"noise too small by a factor of {number(factor)} or more", "noise that is too small"
    else:
        fault, faults = f"{name} at {number(factor)} or more times its claimed value", f"{name} beyond the claim"
    where = "" if test is None else " at the test budget"
    told = f"This audit would have caught, with 95 % probability, {fault}{where}"
    if factor is None:
        told = f"This audit would have caught no factor with 95 % probability{where}"
    may = f": {faults} may go unseen" if factor is None else ""
    if test is None:
        return f"{told}{may}."
    numbers = (
        f"claimed {number(main['claimed'])}, accounted {number(main['accounted'])}, measured {at_least(main['measured'])}"
    )
    at = "none" if at_claim is None else number(at_claim)
    return f"{told} ({at} at the claimed one){may}. Test budget: {test['claim']}; its {name}: {numbers}."


def _caught_by(control: dict[str, Any]) -> str:
    missed = [check for check in control["expected"] if check not in control["caught_by"]]
    caught = _in_order(control["caught_by"]) or NONE
    return f"{caught}; not by {_in_order(missed)}" if missed else caught


def _in_order(checks: Sequence[str]) -> str:
    return ", ".join(check for check in _CHECKS if check in checks)


# --- 5: without statistics ----------------------------------------------------------------------------------


def structural(document: dict[str, Any]) -> list[Block]:
    """Counterexamples, and what the audit of the noise found."""
    audits = document["audits"]
    if not audits:
        return [paragraph("No audit was run.")]
    said: list[Block] = [
        paragraph(
            "Audit without statistics: a run on one data set is recorded, and repeated on a neighbor with the same noisy "
            "outputs. Every release must then come at the same time; its exact value must not change if the replaced record "
            "lies outside what the ledger wrote down, and must change by at most the sensitivity if inside; and what one "
            "record pays for must not exceed the claim. This test has no sampling error: one counterexample refutes the "
            "code. Pairs are searched, not exhausted."
        ),
        paragraph(
            "Audit of the noise: is every number that leaves hidden by fresh noise of the declared size? Runs are recorded "
            "with the exact values beside the outputs. What was added must have the declared mean and spread, and must not "
            "repeat or follow from what was added before. An honest algorithm is accused with a probability of at most one "
            "in a million."
        ),
        table_block(
            "What they found.",
            [
                column("Audit"),
                column("Pairs tried", right=True),
                column("Counterexample"),
                column("Noise"),
                column("Finding"),
            ],
            [_findings(audit) for audit in audits],
            widths=[2.2, 1.0, 1.5, 1.5, 3.8],
        ),
    ]
    for audit in audits:
        if audit["structural"]["counterexample"] is not None:
            said += _counterexample(audit["label"], audit["structural"]["counterexample"])
    return said


def _findings(audit: Audit) -> list[dict[str, Any]]:
    found, ledger = audit["structural"], has_ledger(audit)
    counterexample, flaw = found["counterexample"], found["flaw"]
    told = [words for words in (counterexample and counterexample["told"], flaw) if words]
    not_run = badge("not run", "quiet")
    clean = (
        (badge("none found", "good"), badge("as declared", "good")) if ledger and found["examples"] else (not_run, not_run)
    )
    if not told:
        told = [NONE if ledger else "A plain function shows neither releases nor noise: nothing to look at."]
    return [
        cell_of(audit["label"]),
        cell_of(number(found["examples"])),
        clean[0] if counterexample is None else badge("FOUND", "bad"),
        clean[1] if flaw is None else badge("NOT AS DECLARED", "bad"),
        lines_of(told),
    ]


def _counterexample(label: str, found: dict[str, Any]) -> list[Block]:
    """For a reader who does not know the code: what changes, which release tells it, and by how much it moves too far."""
    case = found["case"]
    said: list[Block] = [
        heading(f"The counterexample to {label}"),
        fact_list(
            [
                ("What is wrong", KINDS[found["kind"]]),
                ("In this run", _sentence(found["reason"])),
                ("What changes", _what_changes(found)),
                *([("Where they part", _sentence(found["difference"]["told"]))] if found["difference"] else []),
                *([("Together", _sentence(found["total"]["told"]))] if found["total"] else []),
                (
                    "To see it again",
                    f"Noise seed {case['seed']}; replicate {found['replicate']} of {number(found['n_replicates'])}.",
                ),
            ]
        ),
        _data_table(found) if case["episode"] is None else _episode_table(found),
    ]
    if found["releases"]:
        said.append(_release_table(found))
    return said


def _what_changes(found: dict[str, Any]) -> str:
    case, record = found["case"], found["case"]["record"]
    if case["episode"] is None:
        brought = "" if case["replaced_brought"] is None else " It brings other contexts in D′, as the file has them."
        return (
            f"Record {record}, of a run of {number(case['n_rounds'])} rounds: its rewards, one an arm, are "
            f"{_values(case['before'])} in the data set D and {_values(case['after'])} in its neighbor D′.{brought} All "
            "other records are the same. Rounds, records and releases are counted from 0."
        )
    row = next(row for row in found["data"] if row["round"] == record)
    moved = "where its actions lead and what they earn are" if case["replaced_brought"] is not None else "what it earns is"
    return (
        f"Record {record}, of a run of {number(case['n_rounds'])} episodes: {moved} not the same in the data set D and in "
        f"its neighbor D′. In this run it lives through states {_listed(row['states'])} with rewards "
        f"{_values(row['rewards'])} on D, and through states {_listed(row['neighbor_states'])} with rewards "
        f"{_values(row['neighbor_rewards'])} on D′. All other records are the same. Episodes, records, states and releases "
        "are counted from 0."
    )


def _listed(values: Sequence[int]) -> str:
    return " ".join(str(value) for value in values)


def _episode_table(found: dict[str, Any]) -> Block:
    case, rows = found["case"], found["data"]
    parted = found["difference"]["round"] if found["difference"] else case["record"]
    shown = _kept(rows, [row["round"] in (case["record"], parted) for row in rows])
    columns = [column("Episode and record", right=True)]
    columns += [column(f"{name} on {side}") for side in ("D", "D′") for name in ("States", "Actions", "Rewards")]
    cells = []
    for row in shown:
        mine, theirs = ([row[f"{side}{name}"] for name in ("states", "actions", "rewards")] for side in ("", "neighbor_"))
        told = [cell_of(_listed(mine[0])), cell_of(_listed(mine[1])), cell_of(_values(mine[2]))]
        if mine == theirs:
            told += [cell_of("the same")] * 3
        else:
            told += [badge(text, "bad") for text in (_listed(theirs[0]), _listed(theirs[1]), _values(theirs[2]))]
        cells.append([cell_of(str(row["round"])), *told])
    return table_block(
        f"The data, episode by episode.{_left_out(len(shown), case['n_rounds'], 'episodes')}", columns, cells,
        widths=[0.9, *[1.2, 1.0, 1.3] * 2], narrow=True,
    )  # fmt: skip


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}."


def _data_table(found: dict[str, Any]) -> Block:
    case, rows = found["case"], found["data"]
    parted = found["difference"]["round"] if found["difference"] else case["record"]
    shown = _kept(rows, [row["round"] in (case["record"], parted) for row in rows])
    both = any(row["arm"] != row["neighbor_arm"] for row in rows)
    columns = [
        column("Round and record", right=True),
        column("Arm played on D" if both else "Arm played", right=True),
        *([column("Arm played on D′", right=True)] if both else []),
        column("Rewards of the arms on D"),
        column("Rewards of the arms on D′"),
    ]
    cells = []
    for row in shown:
        is_changed = row["round"] == case["record"]
        cells.append(
            [
                cell_of(str(row["round"])),
                *(cell_of(_whole(row[key])) for key in ("arm", *(("neighbor_arm",) if both else ()))),
                cell_of(_values(row["rewards"])),
                badge(_values(row["neighbor_rewards"]), "bad") if is_changed else cell_of("the same"),
            ]
        )
    return table_block(
        f"The data, round by round.{_left_out(len(shown), case['n_rounds'], 'rounds')}", columns, cells,
        widths=[0.9, 0.9, *([0.9] if both else []), 1.6, 1.6], narrow=True,
    )  # fmt: skip


def _release_table(found: dict[str, Any]) -> Block:
    record = found["case"]["record"]
    shown = _kept(found["releases"], [row["is_offending"] for row in found["releases"]])
    columns = [
        column("Release", right=True),
        column(f"After {'rounds' if found['case']['episode'] is None else 'episodes'}", right=True),
        column("Noise"),
        column("Records it reads"),
        column(f"Reads record {record}"),
        column("Paid by each"),
        column("Moved", right=True, role="measured"),
        column("Allowed", right=True, role="claimed"),
        column("Times allowed", right=True),
        column("Finding"),
    ]
    rows = [
        [
            cell_of(str(row["release"])),
            cell_of(str(row["rounds"])),
            cell_of(row["mechanism"]),
            cell_of(_span(row)),
            cell_of("yes" if row["reads_record"] else "no"),
            cell_of(row["price"]),
            cell_of(number(row["moved"])),
            cell_of(number(row["allowed"])),
            cell_of(_times(row)),
            badge("offends", "bad") if row["is_offending"] else cell_of(NONE),
        ]
        for row in shown
    ]
    norms = " and ".join(dict.fromkeys(row["norm"] for row in found["releases"]))
    return table_block(
        f"The releases of this run. Moved: how far the exact value, before noise, differs between D and D′ ({norms} norm). "
        "Allowed: the sensitivity that the noise was made for, and 0 for a release that does not read the record."
        f"{_left_out(len(shown), found['n_releases'], 'releases')}",
        columns,
        rows,
        widths=[1, 0.95, 1.3, 1.25, 1.05, 1.1, 0.95, 1, 1, 1.2],
    )  # fmt: skip


def _kept(rows: list[dict[str, Any]], marked: list[bool]) -> list[dict[str, Any]]:
    """All rows, or both ends and the marked ones, of many the first."""
    if len(rows) <= _MOST_ROWS:
        return rows
    ends = {0, 1, 2, len(rows) - 2, len(rows) - 1}
    kept = ends | set([place for place, is_marked in enumerate(marked) if is_marked][: _MOST_ROWS - len(ends)])
    return [row for place, row in enumerate(rows) if place in kept]


def _left_out(n_shown: int, n_all: int, what: str) -> str:
    return (
        "" if n_shown >= n_all else f" {number(n_shown)} of {number(n_all)} {what} are shown, those that matter among them."
    )


def _span(row: dict[str, Any]) -> str:
    first, last = row["start"], row["stop"] - 1
    told = NONE if last < first else str(first) if first == last else f"{first} to {last}"
    return told if row["carried"] in (None, first) else f"{told}; carries {row['carried']} to {first - 1}"


def _times(row: dict[str, Any]) -> str:
    if row["times"] is None:
        return "none allowed"
    return number(row["times"]) if row["moved"] or row["allowed"] else NONE


def _values(values: Sequence[float]) -> str:
    """Numbers in brackets; of many that are all equal their count."""
    shown = [number(value) for value in values]
    if len(shown) > 4 and len(set(shown)) == 1:
        return f"[{shown[0]}, {len(shown)} times]"
    return f"[{', '.join(shown)}]"


def _whole(value: int | None) -> str:
    return NONE if value is None else str(value)
