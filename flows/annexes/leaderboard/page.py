"""Content of a leaderboard's page: who is best where, then one section a problem, then how to read and repeat it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bandana.audits.documents.benchmark import StoppedTests
from bandana.audits.documents.fields import present
from bandana.audits.names import titles_of, with_titles
from bandana.audits.reporting import origin
from bandana.audits.reporting.blocks import (
    Block,
    Cell,
    Column,
    Section,
    badge,
    bullets,
    code_block,
    fact_list,
    figure_block,
    heading,
    lines_of,
    note,
    paragraph,
    plain,
    right,
    table_block,
    verdict_badge,
)
from bandana.audits.reporting.document import TOLERANCE
from bandana.audits.reporting.numbers import NONE, number
from bandana.flows.annexes.leaderboard import plots, win_rate_sections
from bandana.flows.problems.environment import CONSTANT, UNIFORM

if TYPE_CHECKING:
    from bandana.flows.annexes.leaderboard.document import AllAudits, Best, Columns, Leaderboard, Problem, Row

_DATA = {"simulated": "simulated data", "public": "real data", "own": "your own data"}
_READ = (
    ("Regret", "Mean over replications of the reward lost, with its 95 % interval. All rows of a problem play on common "
     "random numbers."),
    ("Rounds to stop", "Mean rounds of tests for the best arm with a given error; the horizon for a test that did not stop. "
     "A row whose interval of wrong answers lies above the error wins nothing."),
    ("Wrong", "Share of such tests that recommend another arm, with Clopper and Pearson's interval. Arms come shuffled."),
    ("µ claimed", "The promise as µ of Gaussian DP, so that Rényi, zero-concentrated, pure and approximate claims stand on "
     "one axis. Each entry gets the weakest claim of its kind within a level."),
    ("µ accounted", "What the ledger of this run composed over the whole horizon for the worst record."),
    ("µ measured", "Lower bound of the audit of the same entry and level; of a pure claim, the µ that the bound on ε has. A "
     "promise depends on no problem, so each entry is audited on one. A dash: not audited at this level."),
    ("/ lower bound", "Regret, rounds or errors divided by the least of any algorithm with the claim. Some bounds are the "
     "leading term for long horizons: a row may lose less. A dash: none is known, as for real data with fixed rows."),
    ("Front", "No row in the same trust model promises as much and does better. Trust models protect different things and "
     "are not compared. `own`: on the front of its kind of guarantee alone. A common µ ranks laws of noise too: at small µ, "
     "Gaussian noise is smaller than the Laplace noise of a pure claim."),
    ("Guarantee", "Pure: ε-DP. Concentrated: Rényi, zero-concentrated and Gaussian DP. Approximate: (ε, δ)-DP. Each kind "
     "has contests and a front of its own beside those of all."),
    ("Defaults, tuned", "Each row plays with one factor on its widths for its whole family, and again with tuned "
     "exploration. Both have the least regret on development instances that no page shows, on one grid for all. Tests for "
     "the best arm are not tuned: they would err more often. A bound on regret is proved at a factor of 1. Exploration "
     "changes no noise and no claim: both share an audit."),
    ("Replications", "A row whose measure has a sample skewness above 2 plays on to 200 replications, with its own seeds."),
    ("Best", "In each trust model every entry plays once within a level, with its weakest claim there. Nobody is best where "
     "the row of least mean is not shown to beat uniform play and the best constant action. The tests are one-sided paired "
     "t-tests at 5 % divided by the number of entries. A row that fails its audit is in no contest and on no front."),
    ("Or", "The 95 % confidence set of the best: rows not shown to be worse than another one. Tests are one-sided paired "
     "t-tests of all ordered pairs with Holm's method. All equally good best rows are in it with 95 % together."),
    ("Median, 90 %", "Of the replications: half of them, and nine of ten, do not exceed it. A few bad runs make a mean."),
    ("≥ uniform", "Share of replications that lost as much as uniform play on the same random numbers, or more."),
    ("Seconds", "Of one replication on one core, as played; compilation and a shared machine are in it."),
)  # fmt: skip


class Measure(NamedTuple):
    """Measure of a problem, in words: in the column's head, in sentences, and of lower bounds."""

    head: str
    words: str
    least: str


MEASURES = {
    "regret": Measure("Regret", "final regret", "Least regret of any algorithm of a class"),
    "rounds": Measure("Rounds to stop", "rounds until a test stops", "Least mean rounds of any test of a class"),
    "errors": Measure(
        "Wrong", "share of wrong recommendations", "Least share of wrong recommendations of any test of a class"
    ),
}


def headline(document: Leaderboard) -> tuple[str, str]:
    """Tone of the page's head and its sentence; red where a promise is broken, yellow where something is open."""
    rows = [row for problem in document["problems"] for row in problem["rows"]]
    private = [row for row in rows if row["role"] == "private"]
    failed = [row for row in private if row["verdict"] == "FAIL" or not keeps_order(row)]
    missing = sum(len(problem["missing"]) for problem in document["problems"])
    passed = sum(row["verdict"] in ("PASS", "NOT REFUTED") for row in private)
    open_ = sum(row["verdict"] == "INCONCLUSIVE" for row in private)
    audited = sum(row["verdict"] is not None for row in private)
    audits = f"{audited} of these audited, {passed} passed{f', {open_} inconclusive' if open_ else ''}"
    n = len(document["problems"])
    text = f"{n} problem{'s' * (n != 1)}, {len(rows)} rows, {len(private)} of them private; "
    text += f"{audits if audited else 'none of these audited'}."
    if failed:
        return "bad", f"{text} {len(failed)} break their promise."
    if missing:
        return "unsure", f"{text} {missing} rows are not finished."
    return "unsure" if open_ else "quiet", text


def keeps_order(row: Row) -> bool:
    """True if the claim is at least what was accounted and at least what was measured, of those that are known.

    The two are not held against one another here: what is accounted is that of this problem's rounds, and what is measured
    that of the audit's rounds, on another problem perhaps. The audit's own verdict compares both in the same rounds.
    """
    if row["mu_claimed"] is None:
        return True
    known = [mu for mu in (row["mu_accounted"], row["mu_measured"]) if mu is not None]
    return all(mu <= row["mu_claimed"] * (1 + TOLERANCE) for mu in known)


def sections(document: Leaderboard) -> list[Section]:
    """Sections of the page: dictionaries `id`, `part`, `title` and `blocks`; figures hold their SVG text.

    Args:
      document: a valid leaderboard.
    """
    document = named(document)
    parts = [("best", "Best at each level of privacy", _best(document))]
    if any(best["column"] == "tuned" for problem in document["problems"] for best in problem["best"]):
        parts.append(("tuned", "Best with tuned exploration", _tuned(document)))
    kinds = ("pure", "concentrated", "approximate")
    parts += [(kind, f"Best with {kind} guarantees", table) for kind in kinds if (table := _winners(document, kind))]
    for file in dict.fromkeys(each["file"] for each in document["win_rates"]):
        rates = [each for each in document["win_rates"] if each["file"] == file]
        parts.append((f"win-rates-{file}", f"Win rates over all problems of {file}", win_rate_sections.blocks(rates)))
    parts += [(f"problem-{problem['name']}", problem["title"], _problem(problem)) for problem in document["problems"]]
    parts += [
        ("reading", "How to read the numbers", [*_together(document["audits"]), fact_list(_READ)]),
        ("reproduce", "How to repeat it", _repeat(document)),
    ]
    return [{"id": key, "part": "page", "title": title, "blocks": blocks} for key, title, blocks in parts]


def named(document: Leaderboard) -> Leaderboard:
    """The document with the guarantee in each row's label: what a level means may differ from problem to problem."""
    return {**document, "problems": [with_titles(problem, titles_of(problem)) for problem in document["problems"]]}


def _together(audits: AllAudits) -> list[Block]:
    """With what confidence no bound of any audit of the page exceeds the truth."""
    if not audits["number"]:
        return []
    many = f"The bounds of all {audits['number']} audits" if audits["number"] > 1 else "All bounds of the one audit"
    return [paragraph(f"{many} hold together with {number(100 * present(audits['confidence']))} % confidence.")]


def _best(document: Leaderboard) -> list[Block]:
    form = f"The whole form of version {document['version']}: every problem at its own horizon."
    if document["form"] == "quick":
        form = (
            f"The quick form of version {document['version']}: {document['rule']}. It shows that everything runs, and the "
            "order of rows that differ much; compare papers on the whole form."
        )
    blocks = [paragraph(form)]
    if changed := [problem["name"] for problem in document["problems"] if problem["is_changed"]]:
        blocks.append(
            paragraph(
                f"Not of version {document['version']}, as they were added or changed: {', '.join(changed)}. Their numbers "
                "are not comparable with those of other pages."
            )
        )
    return [*blocks, *(_winners(document) or [paragraph("No private row is finished.")])]


def _tuned(document: Leaderboard) -> list[Block]:
    """The contests of tuned rows, and how far they rank as the defaults do."""
    return [paragraph(agreement(document["columns"])), *_winners(document, column="tuned")]


def agreement(columns: Columns) -> str:
    """Agreement of both columns, in words."""
    text = f"Defaults and tuned rows play {columns['contests']} contests."
    if columns["kendall"] is not None:
        text += (
            f" Over the {columns['ranked']} of at least three rows, Kendall's τ between the two orders is "
            f"{number(columns['kendall'])} on average, and Spearman's correlation {number(present(columns['spearman']))}."
        )
    if columns["holds"] is not None:
        share = number(100 * columns["holds"])
        text += f" Of the {columns['won']} that somebody wins in a column, {share} % have the same winner in both."
    return text


def contests_of(problem: Problem, trust: str, guarantee: str | None, column: str) -> dict[float, Best]:
    """Level -> contest of a trust model, of all guarantees or of a kind, in a column."""
    own = (best for best in problem["best"] if best["privacy_model"] == trust and best["guarantee"] == guarantee)
    return {best["mu"]: best for best in own if best["column"] == column}


def _winners(document: Leaderboard, guarantee: str | None = None, column: str = "defaults") -> list[Block]:
    """A table of winners of all problems and trust models; empty where there is no contest."""
    levels = document["levels"]
    heads = [f"µ ≤ {number(level)}" for level in levels]
    columns: list[Column] = ["Problem", "Trust", *heads, right("Uniform"), right("Constant")]
    rows = []
    for problem in document["problems"]:
        for trust in dict.fromkeys(best["privacy_model"] for best in problem["best"]):
            own = contests_of(problem, trust, guarantee, column)
            measure = "" if problem["measure"] == "regret" else f", {MEASURES[problem['measure']].head.lower()}"
            means = {row["label"]: number(float(row["mean"])) for row in problem["rows"]}
            unlearned = [means.get(label, NONE) for label in (UNIFORM, CONSTANT)]
            if own:
                rows.append([problem["title"] + measure, trust, *(_winner(own.get(level)) for level in levels), *unlearned])
    caption = (
        "The private row of least mean regret, or of what stands behind a problem's name, each entry at its weakest claim "
        "within µ; below it, the others of the confidence set of the best. Nobody: that row is not shown to beat what "
        "needs no learning. Last: uniform play, and the best constant action where that is not what is learned."
    )
    widths = [2.0, 0.8, *[2.0] * len(levels), 0.8, 0.8]
    return [table_block(caption, columns, rows, widths=widths)] if rows else []


def _winner(best: Best | None) -> Cell:
    if best is None or best["label"] is None:
        return NONE
    first = f"{best['label']}: {number(float(present(best['mean'])))}"
    if best["not_beaten"]:
        return lines_of(["nobody", f"{first}, which does not beat {' and '.join(best['not_beaten'])}"])
    others = [f"or {label}" for label in best["best_set"] if label != best["label"]]
    shown = others[:3] + ([f"and {len(others) - 3} more"] if len(others) > 3 else [])
    level = present(best["mu_claimed"])
    within = [f"claims µ = {number(level)} only"] if level < best["mu"] / 2 else []
    return lines_of([first, *within, *shown])


def _problem(problem: Problem) -> list[Block]:
    blocks = [paragraph(f"{problem['description']}. {_facts(problem)}"), note(problem["about"])]
    rows = problem["rows"]
    if private := [row for row in rows if row["role"] == "private" and row["mu_claimed"]]:
        blocks.append(_figure(problem, private))
    blocks += [_table(problem)] if rows else []
    blocks += _least(problem)
    if own := dict.fromkeys(f"{row['algorithm']}: {row['source']}" for row in rows if row["is_own"]):
        blocks += [heading("Rows of your own"), bullets([*own])]
    if cautions := [f"{row['label']}: {row['caution']}." for row in rows if row["caution"]]:
        blocks += [heading("Intervals to read with care"), bullets(cautions)]
    if problem["missing"]:
        blocks.append(paragraph(f"Not finished: {', '.join(problem['missing'])}. Run the same command again."))
    if problem["left_out"]:
        blocks.append(note(f"Entries for this kind of problem that do not play here: {', '.join(problem['left_out'])}."))
    return blocks


def _facts(problem: Problem) -> str:
    given = ", ".join(f"{name} = {_given(value)}" for name, value in problem["parameters"].items())
    text = (
        f"{number(problem['horizon'])} {problem['unit']}, {number(problem['replications'])} replications, "
        f"{_DATA.get(problem['data'], problem['data'])}, kind {problem['kind']}."
    )
    return text + (f" Every entry that takes it plays with {given}." if given else "")


def _given(value: object) -> str:
    """A value of a parameter, or that of each family."""
    if not isinstance(value, dict):
        return plain(value)
    return " and ".join(f"{plain(each)} ({family.rpartition('/')[2]})" for family, each in value.items())


def _figure(problem: Problem, private: Sequence[Row]) -> Block:
    lines = list(dict.fromkeys(map(family_of, private)))
    ends = "; ".join(f"{row['label']}: {number(float(row['mean']))} at µ = {number(row['mu_claimed'])}" for row in private)
    others = [row for row in problem["rows"] if row["role"] != "private"]
    measure = MEASURES[problem["measure"]]
    band = "Clopper and Pearson's, of a share" if problem["measure"] == "errors" else problem["band"]
    return figure_block(
        f"{problem['measure']} against mu on {problem['name']}",
        f"{_sentence(measure.words)} against the claimed µ, with intervals: {band}. Filled marks are on the front "
        "of their trust model. Gray: not private; dotted gray: reference policies. Dotted in color: its lower bound.",
        [
            (
                plots.measure_against_mu(
                    {name: [row for row in private if family_of(row) == name] for name in lines}, others, measure.words
                ),
                f"{measure.head} against mu on {problem['title']}. {ends}.",
            )
        ],
        size="medium",
    )


def family_of(row: Row) -> str:
    """Name of a row without its level: rows of one family form one line."""
    own = row["entry"] if not row["is_own"] else row["algorithm"]
    return f"{own} {row['calibration']}" if row["calibration"] not in (None, "tight") else own


def _table(problem: Problem) -> Block:
    measure = MEASURES[problem["measure"]]
    columns: list[Column] = ["Row", "Front", "Trust", "Guarantee", right("µ claimed", "claimed")]
    columns += [right("µ accounted", "accounted"), right("µ measured", "measured"), "Audit"]
    titles = (measure.head, "Interval", "Tuned", "Median, 90 %", "≥ uniform", f"{measure.head} / lower bound")
    columns += [right(title) for title in (*titles, *_more(problem), "Seconds")]
    rows = [
        [
            row["label"] + (" (own)" if row["is_own"] else ""),
            badge("front", "good") if row["is_on_front"] else badge("own", "quiet") if row["is_on_own_front"] else "",
            row["privacy_model"] if row["role"] != "reference" else "reference",
            row["guarantee"] or NONE,
            number(row["mu_claimed"]),
            number(row["mu_accounted"]),
            number(row["mu_measured"]),
            _verdict(row),
            number(float(row["mean"])),
            f"{number(float(row['low']))} to {number(float(row['high']))}",
            _with_tuned(row),
            NONE if row["median"] is None else f"{number(row['median'])}, {number(row['quantile_90'])}",
            number(row["no_better_than_uniform"]),
            number(row["over_lower_bound"]),
            *(tell(present(row["test"])) for tell in _more(problem).values()),
            number(row["seconds"]),
        ]
        for row in problem["rows"]
    ]
    unit = ", in units of reward," if problem["measure"] == "regret" else ""
    return table_block(
        f"{_sentence(measure.words)} within {number(problem['horizon'])} {problem['unit']}{unit} by level of privacy. Last: "
        "rows that are not private.",
        columns,
        rows,
        widths=[2.4, 0.7, 0.9, 1.0, 0.9, 1.0, 1.0, 1.1, 1.0, 1.7, 1.5, 1.3, 0.9, 1.0, *[1.0] * len(_more(problem)), 0.9],
    )


def _with_tuned(row: Row) -> Cell:
    """The mean with tuned exploration, and the value that was tuned."""
    if (tuned := row["tuned"]) is None:
        return NONE
    mean = number(float(tuned["mean"]))
    return mean if tuned["exploration"] is None else lines_of([mean, tuned["exploration"]])


def _more(problem: Problem) -> dict[str, Callable[[StoppedTests], str]]:
    """Further columns of tests: head -> what it shows of a row's test."""
    if problem["measure"] == "rounds":
        return {"Not stopped": lambda test: number(test["undecided"]), "Wrong": lambda test: number(test["wrong"])}
    if problem["measure"] == "errors":
        return {"Proved at most": lambda test: number(test["error_bound"])}
    return {}


def _verdict(row: Row) -> Cell:
    if not keeps_order(row):
        return badge("ORDER BROKEN", "bad")
    return NONE if row["verdict"] is None else verdict_badge(row["verdict"])


def _least(problem: Problem) -> list[Block]:
    if not any(row["role"] != "reference" for row in problem["rows"]):
        return []
    if not problem["lower_bounds"]:
        reason = (
            "its rows are fixed, and a lower bound speaks of rewards that are drawn"
            if problem["data"] == "public"
            else "none is proved for this kind of problem"
        )
        return [paragraph(f"No lower bound is known here: {reason}.")]
    rows = [
        [_sentence(least["class"]), number(least["mu"]), number(float(least["value"]))] for least in problem["lower_bounds"]
    ]
    texts = dict.fromkeys(each["text"].replace(f"{each['class']}, ", "") for each in problem["lower_bounds"])
    caption = f"{MEASURES[problem['measure']].least}, within {number(problem['horizon'])} {problem['unit']}."
    columns: list[Column] = ["Class of algorithms", right("µ"), right("At least")]
    listed = bullets([f"{_sentence(text)}." for text in texts])
    return [heading("Lower bounds"), table_block(caption, columns, rows, narrow=True), listed]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _repeat(document: Leaderboard) -> list[Block]:
    made: Any = document["provenance"]
    return [
        code_block("\n".join(document["commands"])),
        paragraph(
            "Finished blocks and audits are kept: the same command goes on where it stopped, and ends with the same numbers."
        ),
        *origin.section(made),
    ]
