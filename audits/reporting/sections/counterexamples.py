"""Report section on the deterministic audit, its counterexamples, and the noise audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from bandana.audits.documents.audit import Audit
from bandana.audits.documents.counterexample import Counterexample, PlayedRound, ShownRelease
from bandana.audits.documents.fields import present
from bandana.audits.documents.report import Report
from bandana.audits.reporting.blocks import Block, Cell, badge, fact_list, heading, lines_of, paragraph, right, table_block
from bandana.audits.reporting.document import has_ledger
from bandana.audits.reporting.numbers import NONE, number

KINDS = {
    "decision": "The two runs had the same released values and still diverged: a decision used data that had not been "
    "released.",
    "span": "A value moved although its release declares that it does not read the record: the record is not charged for "
    "it.",
    "sensitivity": "One record moves a value further than the noise is calibrated for, so the noise hides less than is "
    "charged.",
    "sequence": "Several releases are charged once, as one vector, and together they move further than that vector may.",
    "not a number": "A value is not a number, so nothing bounds what it reveals.",
    "no noise": "A value is released without any noise and reveals everything that it reads.",
    "released state": "The released state, from which all decisions are made, holds something that no release made public.",
    "book": "One record pays for more releases than the claim allows in total.",
}
"""Meaning of each kind of counterexample (`bandana.audits.searches.counterexample`)."""
_MOST_ROWS = 24
Row = TypeVar("Row", PlayedRound, ShownRelease)


def deterministic(document: Report) -> list[Block]:
    """Counterexamples of the deterministic audit and findings of the noise audit."""
    audits = document["audits"]
    if not audits:
        return [paragraph("No audit was run.")]
    blocks: list[Block] = [
        paragraph(
            "Deterministic audit: a run on one data set is recorded, and repeated on a neighbor with the same noisy "
            "outputs. Every release must then come at the same time. Its exact value must stay the same if the replaced "
            "record lies outside the declared span, and change by at most the sensitivity if inside. The charges of one "
            "record must not exceed the claim. This test has no sampling error: one counterexample refutes the code. "
            "Every record changes in turn, among many values and contexts; the search over data sets is not exhaustive."
        ),
        paragraph(
            "Noise audit: does every released number carry fresh noise of the declared size? Runs are recorded with "
            "exact values and outputs. The added noise must have the declared mean and spread, and must not repeat or "
            "follow from earlier noise. The false-alarm probability for a correct algorithm is at most one in a million."
        ),
        table_block(
            "Findings by audit",
            ["Audit", right("Pairs tried"), "Counterexample", "Noise", "Finding"],
            [_findings(audit) for audit in audits],
            widths=[2.2, 1.0, 1.5, 1.5, 3.8],
        ),
    ]
    for audit in audits:
        if audit["deterministic"]["counterexample"] is not None:
            blocks += _counterexample(audit["label"], audit["deterministic"]["counterexample"])
    return blocks


def _findings(audit: Audit) -> list[Cell]:
    checks, ledger = audit["deterministic"], has_ledger(audit)
    counterexample, noise_finding = checks["counterexample"], checks["noise_finding"]
    findings = [words for words in (counterexample and counterexample["summary"], noise_finding) if words]
    not_run = badge("not run", "quiet")
    clean: tuple[Cell, Cell] = (not_run, not_run)
    if ledger and checks["examples"]:
        clean = ("none found", "as declared")
    if not findings:
        findings = [NONE if ledger else "A plain function shows neither releases nor noise, so there is nothing to check."]
    return [
        audit["label"],
        number(checks["examples"]),
        clean[0] if counterexample is None else badge("FOUND", "bad"),
        clean[1] if noise_finding is None else badge("NOT AS DECLARED", "bad"),
        lines_of(findings),
    ]


def _counterexample(label: str, violation: Counterexample) -> list[Block]:
    """Counterexample for a reader who does not know the code: the change, the release that reveals it, and the excess."""
    case = violation["case"]
    blocks: list[Block] = [
        heading(f"Counterexample for {label}"),
        fact_list(
            [
                ("Fault", KINDS[violation["kind"]]),
                ("In this run", _sentence(violation["reason"])),
                ("Change", _what_changes(violation)),
                *(
                    [("Where the runs diverge", _sentence(violation["difference"]["summary"]))]
                    if violation["difference"]
                    else []
                ),
                *([("Together", _sentence(violation["total"]["summary"]))] if violation["total"] else []),
                (
                    "To reproduce it",
                    f"Noise seed {case['seed']}; replicate {violation['replicate']} of {number(violation['n_replicates'])}"
                    + (
                        "." if case.get("wide") is None else f"; release {case['wide']} is drawn with three times its noise."
                    ),
                ),
            ]
        ),
        _data_table(violation) if case["episode"] is None else _episode_table(violation),
    ]
    if violation["releases"]:
        blocks.append(_release_table(violation))
    return blocks


def _what_changes(violation: Counterexample) -> str:
    case, record = violation["case"], violation["case"]["record"]
    if case["episode"] is None:
        covariates = "" if case["replaced_covariates"] is None else " Its contexts in D′ also differ, as listed in the "
        "JSON file."
        which = f"Record {record}" + "".join(f", {other}" for other in case.get("others", ()))
        which += ", all of one user" if case.get("others") else ""
        return (
            f"{which}, in a run of {number(case['n_rounds'])} rounds: its rewards, one per arm, are "
            f"{_values(case['before'])} in the data set D and {_values(case['after'])} in its neighbor D′.{covariates} "
            "All other records are the same. Rounds, records and releases are counted from 0."
        )
    row = next(row for row in violation["data"] if row["round"] == record)
    moved = "where its actions lead and what they earn are" if case["replaced_covariates"] else "what it earns is"
    return (
        f"Record {record}, of a run of {number(case['n_rounds'])} episodes: {moved} not the same in the data set D and in "
        f"its neighbor D′. In this run it lives through states {_listed(row['states'])} with rewards "
        f"{_values(row['rewards'])} on D, and through states {_listed(row['neighbor_states'])} with rewards "
        f"{_values(row['neighbor_rewards'])} on D′. All other records are the same. Episodes, records, states and releases "
        "are counted from 0."
    )


def _listed(values: Sequence[int] | None) -> str:
    return " ".join(map(str, present(values)))


def _shown_rows(violation: Counterexample) -> list[PlayedRound]:
    """Rows of the data table; the changed record and the place where the runs diverge stay."""
    record = violation["case"]["record"]
    marked = (record, violation["difference"]["round"] if violation["difference"] else record)
    return _kept(violation["data"], [row["round"] in marked for row in violation["data"]])


def _episode_table(violation: Counterexample) -> Block:
    shown = _shown_rows(violation)
    columns = [right("Episode and record")]
    columns += [f"{name} on {side}" for side in ("D", "D′") for name in ("States", "Actions", "Rewards")]
    cells = []
    for row in shown:
        mine, theirs = (
            (row["states"], row["actions"], row["rewards"]),
            (row["neighbor_states"], row["neighbor_actions"], row["neighbor_rewards"]),
        )
        same, other = ([_listed(states), _listed(actions), _values(rewards)] for states, actions, rewards in (mine, theirs))
        differing: list[Cell] = ["the same"] * 3 if mine == theirs else [badge(text, "bad") for text in other]
        cells.append([str(row["round"]), *same, *differing])
    return table_block(
        f"The data by episode.{_left_out(len(shown), violation['case']['n_rounds'], 'episodes')}", columns, cells,
        widths=[0.9, *[1.2, 1.0, 1.3] * 2], narrow=True,
    )  # fmt: skip


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}."


def _data_table(violation: Counterexample) -> Block:
    case, shown = violation["case"], _shown_rows(violation)
    both = any(row["arm"] != row["neighbor_arm"] for row in violation["data"])
    places = ("Round and record", *(("Arm played on D", "Arm played on D′") if both else ("Arm played",)))
    columns = [*map(right, places), "Rewards of the arms on D", "Rewards of the arms on D′"]
    cells = [
        [
            str(row["round"]),
            *(NONE if arm is None else str(arm) for arm in (row["arm"], *((row["neighbor_arm"],) if both else ()))),
            _values(row["rewards"]),
            badge(_values(row["neighbor_rewards"]), "bad") if row["round"] == case["record"] else "the same",
        ]
        for row in shown
    ]
    return table_block(
        f"The data by round.{_left_out(len(shown), case['n_rounds'], 'rounds')}", columns, cells,
        widths=[0.9, 0.9, *([0.9] if both else []), 1.6, 1.6], narrow=True,
    )  # fmt: skip


def _release_table(violation: Counterexample) -> Block:
    record = violation["case"]["record"]
    shown = _kept(violation["releases"], [row["is_offending"] for row in violation["releases"]])
    unit = "rounds" if violation["case"]["episode"] is None else "episodes"
    columns = [right("Release"), right(f"After {unit}"), "Noise", "Records it reads", f"Reads record {record}"]
    columns += ["Charge per record", right("Moved", "measured"), right("Allowed", "claimed"), right("Times allowed")]
    columns += ["Finding"]
    rows = [
        [
            str(row["release"]),
            str(row["rounds"]),
            row["mechanism"],
            _span(row),
            "yes" if row["reads_record"] else "no",
            row["cost"],
            number(row["moved"]),
            number(row["allowed"]),
            _times(row),
            badge("violation", "bad") if row["is_offending"] else NONE,
        ]
        for row in shown
    ]
    norms = " and ".join(dict.fromkeys(row["norm"] for row in violation["releases"]))
    return table_block(
        f"The releases of this run. Moved: distance of the exact values, before noise, between D and D′ ({norms} norm). "
        "Allowed: the sensitivity that the noise is calibrated for, and 0 for a release that does not read the "
        f"record.{_left_out(len(shown), violation['n_releases'], 'releases')}",
        columns,
        rows,
        widths=[1, 0.95, 1.3, 1.25, 1.05, 1.1, 0.95, 1, 1, 1.2],
    )  # fmt: skip


def _kept(rows: list[Row], marked: list[bool]) -> list[Row]:
    """All rows, or for long tables both ends and the first marked ones."""
    if len(rows) <= _MOST_ROWS:
        return rows
    ends = {0, 1, 2, len(rows) - 2, len(rows) - 1}
    kept = ends | set([place for place, is_marked in enumerate(marked) if is_marked][: _MOST_ROWS - len(ends)])
    return [row for place, row in enumerate(rows) if place in kept]


def _left_out(n_shown: int, n_all: int, what: str) -> str:
    return "" if n_shown >= n_all else f" Showing {number(n_shown)} of {number(n_all)} {what}, including the relevant ones."


def _span(row: ShownRelease) -> str:
    first, last = row["start"], row["stop"] - 1
    records = NONE if last < first else str(first) if first == last else f"{first} to {last}"
    return records if row["carried"] in (None, first) else f"{records}; carries {row['carried']} to {first - 1}"


def _times(row: ShownRelease) -> str:
    if row["times"] is None:
        return "none allowed"
    return number(row["times"]) if row["moved"] or row["allowed"] else NONE


def _values(values: Sequence[float]) -> str:
    """Numbers in brackets; a count for many equal ones."""
    shown = [number(value) for value in values]
    if len(shown) > 4 and len(set(shown)) == 1:
        return f"[{shown[0]}, {len(shown)} times]"
    return f"[{', '.join(shown)}]"
