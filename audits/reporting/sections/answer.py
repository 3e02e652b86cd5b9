"""First screen of a report: one sentence in plain words, one picture, one table with the reason of each strength."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from bandana.audits.documents.benchmark import BenchmarkCell
from bandana.audits.documents.fields import present
from bandana.audits.documents.report import Environment, Report
from bandana.audits.reporting.blocks import (
    Block,
    Cell,
    Column,
    at_least,
    fact_list,
    figure_block,
    link_of,
    right,
    span,
    spans_cell,
    table_block,
    verdict_badge,
)
from bandana.audits.reporting.document import cells_of, has_ledger
from bandana.audits.reporting.figures import audit_plots, regret_plots
from bandana.audits.reporting.figures.drawing import ROLES
from bandana.audits.reporting.numbers import number, unit_of
from bandana.audits.reporting.sections.strength import (
    HELD,
    USER,
    WORDS,
    Promise,
    odds,
    promises,
    reason_of,
    right_guesses,
    strength_of,
)
from bandana.audits.reporting.sections.utility import family_of, is_shown, short_names
from bandana.audits.summary import epsilon_of, finite

MOST = 8
"""Most promises that the first screen shows."""
_MOST_ROWS = 10
_KEPT = {
    "PASS": ("the audit found no breach", "none of {n} audits found a breach"),
    "NOT REFUTED": ("the audit found no breach in the actions, which is all it saw", "none of {n} audits found a breach"),
    "INCONCLUSIVE": ("the audit could not decide whether it is kept", "{k} of {n} audits could not decide"),
    "FAIL": ("the audit found it broken", "{k} of {n} audits found a promise broken"),
}
_WORDS = {
    "ε (epsilon)": "Limit on what one record can reveal: it makes no result more than exp(ε) times as likely. 0 reveals "
    "nothing.",
    "δ (delta)": "Chance that this limit fails. It must be far below 1 divided by the number of people.",
    "claimed": "The ε that the source of the algorithm promises.",
    "accounted": "The ε that our accountant adds up from the noise of this run.",
    "measured": "The ε that attacks reached, as a lower bound. Above claimed, the promise is broken.",
    "verdict": "PASS: no test found more than claimed, and the tests caught every planted fault. Evidence, not proof.",
    "strength": "Worth of a promise that is kept: strong up to ε = 1, moderate up to 10, weak above or with a large δ.",
    "regret": "Reward lost against the best action, summed over the {unit}.",
}


def sentence(document: Report) -> str:
    """The answer in one sentence: what was promised to whom, whether tests found it kept, and how strong it is."""
    made, n = list(promises(document)), len(document["audits"])
    if not made:
        return "No privacy is promised, and none was tested."
    units = {promise.unit.replace("one ", "any one ", 1) for promise in made}
    whom = units.pop() if len(units) == 1 else "any one record"
    verdicts = Counter(str(audit["verdict"]) for audit in document["audits"])
    worst = next((verdict for verdict in reversed(_KEPT) if verdicts[verdict]), None)
    kept = "no test asked whether this is kept"
    if worst is not None:
        kept = _KEPT[worst][n > 1].format(n=n, k=verdicts[worst])
    people = document["people"]["count"]
    words = Counter(strength_of(promise, people).word for promise in made)
    (first, count), *rest = sorted(words.items(), key=lambda item: -WORDS.index(item[0]))
    how = f"{'the' if len(made) == 1 else 'all' if not rest else count} promise{'s are' if count > 1 else ' is'} {first}"
    for place, (word, count) in enumerate(rest, start=1):
        how += f"{' and' if place == len(rest) else ','} {count} {word}"
    return f"Each person is promised that the results reveal little about {whom}; {kept}; {how}."


def shown_of(document: Report) -> list[Promise]:
    """The promises that the table shows: all, or of many those that did not pass and then the weakest, in their order."""
    made = list(promises(document))
    weak_first = sorted(made, key=lambda each: (each.verdict in (None, *HELD), -(each.epsilon or math.inf)))[:MOST]
    return [promise for promise in made if promise in weak_first]


def answer(document: Report) -> list[Block]:
    """Picture, table and glossary of the first screen; nothing of a report that promises nothing."""
    shown = shown_of(document)
    numbers = {promise.label: _numbers(promise, document) for promise in promises(document)}
    unit = unit_of(document["environments"])
    words = [(term, text.format(unit=unit)) for term, text in _WORDS.items() if term != "regret" or document["benchmark"]]
    return [*_picture(document, numbers), _table(document, shown, numbers), fact_list(words)] if shown else []


def _numbers(promise: Promise, document: Report) -> list[float | None]:
    """Epsilon at the promise's delta: claimed, accounted and measured."""
    audit = next((audit for audit in document["audits"] if audit["label"] == promise.label), None)
    if audit is not None:
        three = audit["epsilon"] if promise.delta else audit["main"]
        return [three["claimed"], three["accounted"], three["measured"]]
    cell = next(cell for cell in cells_of(document) if cell["label"] == promise.label)
    spent = cell["mu"] if promise.delta else None
    return [promise.epsilon, None if spent is None else finite(epsilon_of(spent, promise.delta)), None]


def _table(document: Report, shown: Sequence[Promise], numbers: Mapping[str, list[float | None]]) -> Block:
    audits = {audit["label"]: audit for audit in document["audits"]}
    own = {entry["label"]: entry["path"] for entry in document["related"]} if document["kind"] != "audit" else {}
    people, made = document["people"]["count"], list(promises(document))
    deltas = {promise.delta for promise in shown}
    columns: list[Column] = ["Algorithm", "Verdict", "Strength", *(right(role, role) for role in ROLES)]
    rows: list[list[Cell]] = []
    for promise in shown:
        claimed, accounted, measured = numbers[promise.label]
        name = promise.label if len(deltas) == 1 else f"{promise.label} (δ = {number(promise.delta)})"
        word, audit = strength_of(promise, people).word, audits.get(promise.label)
        rows.append(
            [
                link_of(name, own.get(promise.label)),
                "not audited" if audit is None else verdict_badge(audit["verdict"]),
                spans_cell(span(word, "strong"), span(f": {reason_of(promise, people)}{_to_a_person(promise)}")),
                number(claimed),
                "no ledger" if audit is not None and not has_ledger(audit) else number(accounted),
                number(None) if audit is None else at_least(measured),
            ]
        )
    delta = shown[0].delta
    at = "ε at each δ" if len(deltas) > 1 else f"ε at δ = {number(delta)}" if delta else "ε (pure)"
    most = f" {MOST} of {len(made)} promises: those that did not pass, and the weakest." if len(made) > MOST else ""
    return table_block(
        f"The promise to one {level_of(made)}, whether tests found it kept, and how strong it is; {at}.{most} Even odds "
        "become: somebody who knows all else gets to these odds at most, except with probability about δ. Right guesses: of "
        "those between two values, at most so many; 50 % is chance.",
        columns,
        rows,
        groups=[("", 3), (at, 3)],
        widths=[2.2, 1.5, 2.6, 1, 1.1, 1.1],
    )


def _to_a_person(promise: Promise) -> str:
    """Meaning of a promise for one record, as odds and as guesses; nothing of one that is refuted."""
    if promise.verdict == "FAIL":
        return ""
    return f"; even odds become {odds(promise.epsilon)}, right guesses {right_guesses(promise.epsilon, promise.delta)}"


def level_of(made: Sequence[Promise]) -> str:
    """Returns the unit that promises protect: a record, a user with all records, or, where they differ, a unit."""
    levels = {promise.relation == USER for promise in made}
    return "unit" if len(levels) > 1 else "user" if True in levels else "record"


def _picture(document: Report, numbers: Mapping[str, list[float | None]]) -> list[Block]:
    """Regret against the three epsilons, a panel for each environment; the epsilons alone where no regret is shown."""
    panels = [(each, _panel(each, document, numbers)) for each in document["environments"]]
    drawn = [(environment["label"], panel) for environment, panel in panels if panel is not None]
    if drawn:
        return [
            figure_block(
                "regret against privacy",
                "What privacy costs: final regret against ε as claimed, accounted and measured (a lower bound). Left is "
                "more private, low is better. Bars: intervals of the mean.",
                [panel for _, panel in drawn],
                titles=[label if len(panels) > 1 else "" for label, _ in drawn],
                size="medium" if len(drawn) == 1 else "large",
            )
        ]
    audits = [audit for audit in document["audits"] if any(value is not None for value in audit["epsilon"].values())]
    audits = audits[:_MOST_ROWS]
    words = "The ε of each audit: claimed must be at least accounted, and accounted at least measured."
    rows = (f"{a['label']}: " + ", ".join(f"{role} {number(a['epsilon'][role])}" for role in ROLES) for a in audits)
    dots = [(audit_plots.epsilons(audits), f"Dot plot of epsilon. {'; '.join(rows)}.")] if audits else []
    return [figure_block("claimed accounted measured", words, dots, size="medium")] if dots else []


def _panel(environment: Environment, document: Report, numbers: Mapping[str, list[float | None]]) -> tuple[str, str] | None:
    """SVG text and description of one environment's panel; None where no private cell shows its regret."""
    cells = [cell for cell in cells_of(document) if cell["environment"] == environment["label"] and is_shown(cell)]
    private = [cell for cell in cells if numbers.get(cell["label"], [None])[0]]
    if not private:
        return None
    names = short_names(private)
    families: dict[str, list[BenchmarkCell]] = {}
    for cell in sorted(private, key=lambda cell: present(numbers[cell["label"]][0])):
        families.setdefault(names[family_of(cell)], []).append(cell)
    twins = [cell for cell in cells if cell["epsilon"] is None and cell["role"] == "algorithm"]
    noiseless = {cell["twin_of"]: cell for cell in cells if cell["twin_of"] is not None}
    ends = [
        f"{name}: "
        + ", ".join(f"{number(regret_plots.final_of(c).mean)} at ε = {number(numbers[c['label']][0])}" for c in own)
        for name, own in families.items()
    ] + [f"{twin['label']}, not private: {number(regret_plots.final_of(twin).mean)}" for twin in twins]
    three = {cell["label"]: numbers[cell["label"]] for cell in private}
    return regret_plots.frontier(families, twins, noiseless, three), f"Final regret against ε. {'; '.join(ends)}."
