"""Label of a report: what is promised to whom, what that means for one person, and who answers for it."""

from __future__ import annotations

from bandana.audits.documents.benchmark import BenchmarkCell
from bandana.audits.documents.fields import present
from bandana.audits.documents.report import BookSummary, Deployment, Report
from bandana.audits.reporting import origin
from bandana.audits.reporting.blocks import Block, fact_list, heading, link, note, paragraph, span
from bandana.audits.reporting.numbers import number, unit_of
from bandana.audits.reporting.sections.answer import MOST, level_of
from bandana.audits.reporting.sections.rounds import reach
from bandana.audits.reporting.sections.strength import (
    SOURCES,
    USER,
    Promise,
    composed,
    noise_sources,
    private_cells,
    promises,
)
from bandana.audits.summary import epsilon_of

TRUST = {
    "none": "none: no privacy is claimed",
    "central": "central: one trusted curator sees the data; its releases are protected",
    "joint": "joint: one trusted curator sees the data; each user is protected from all other users",
    "shuffle": "shuffle: a shuffler that mixes messages is trusted, the server is not; each record is protected in the mix",
    "local": "local: nobody is trusted; each record is protected before it leaves its user",
}
"""Each trust model in words."""
_WHOSE = {
    "simulated": "simulated: nobody's",
    "public": "public, on real people",
    "private": "private, on real people",
    "own": "made by the user's own code; whose they are is not known here",
}
_NOT_DECLARED = "not declared"


def label(document: Report) -> list[Block]:
    """Blocks of the label.

    Args:
      document: a valid report document of an experiment or of one audit.
    """
    made = list(promises(document))
    blocks: list[Block] = related(document)
    blocks.append(fact_list([(term, text) for term, text in _facts(document, made) if text]))
    blocks += _declared(document)
    return [*blocks, *origin.caveat(document["provenance"]), *([note(SOURCES)] if made else [])]


def related(document: Report) -> list[Block]:
    """Links to the reports that the first screen does not list."""
    listed = set() if document["kind"] == "audit" else {audit["label"] for audit in document["audits"]}
    others = [entry for entry in document["related"] if entry["label"] not in listed]
    if not others:
        return []
    links = [[span(", ")] * (index > 0) + [link(entry["label"], entry["path"])] for index, entry in enumerate(others)]
    return [paragraph([span("Part of the report: "), *(part for parts in links for part in parts)])]


def _facts(document: Report, made: list[Promise]) -> list[tuple[str, str]]:
    deployment = document["deployment"]
    people, source = document["people"]["count"], document["people"]["source"]
    units = list(dict.fromkeys(f"{each.unit}; neighbors: {each.relation}" for each in made))
    names = dict.fromkeys(audit["algorithm"] for audit in document["audits"])
    names |= dict.fromkeys(cell["algorithm"] for cell in private_cells(document))
    played = f"Private algorithms: {', '.join(names)}." if names else "No private algorithm."
    description = document["description"]
    return [
        ("What", f"{description}{'' if description.endswith(('.', '?', '!')) else '.'} {played}" if description else played),
        ("Whose data", _whose(document)),
        ("Unit of privacy", _joined(units) + _group_privacy(made, document)),
        ("Users who return", _returning(made, document)),
        ("Trust model", _joined(_trust(document))),
        ("Number of people", f"{number(people)}, {source}." if people is not None else f"Not known: {source}."),
        ("δ and people", _expected(made, people)),
        ("One run or many", _runs(document)),
        ("All runs together", _together(document)),
        ("Rounds audited", reach(document)),
        ("Noise", _noise(document)),
        ("Who", _who(document)),
        ("Code", _code(document)),
        ("When", f"{_joined([origin.computed(document)])} {_expires(deployment)}"),
    ]


def _joined(parts: list[str]) -> str:
    """Parts as one sentence; a name or a symbol at its start stays as it is."""
    text = "; ".join(parts)
    first = text.split(" ", 1)[0]
    is_word = first.rstrip(":").isascii() and first.rstrip(":").isalpha()
    return (text[:1].upper() + text[1:] if is_word else text) + ("." if text else "")


def _whose(document: Report) -> str:
    parts = []
    for each in document["environments"]:
        apart = ", ".join(each["not_the_data_of"])
        other = f", declared to be of other people than those of the budget book {apart}" if apart else ""
        parts.append(f"the data of {each['label']} are {_WHOSE[each['data']]}{other}")
    return _joined(parts)


def _trust(document: Report) -> list[str]:
    models = dict.fromkeys(audit["privacy_model"] for audit in document["audits"])
    models |= dict.fromkeys(cell["privacy_model"] for cell in private_cells(document))
    return [TRUST.get(model, str(model)) for model in models]


def _group_privacy(made: list[Promise], document: Report) -> str:
    if not made or level_of(made) == "user":
        return ""
    text = " A person with k records is protected less: up to k times these ε, at a larger δ."
    people, horizon = document["people"]["count"], max(each["horizon"] for each in document["environments"])
    if people is not None and people < horizon:
        text += f" Here {number(people)} people share {number(horizon)} records, so that somebody has several."
    return text


def _returning(made: list[Promise], document: Report) -> str:
    """The level of the promises where users have several records, and a warning where they are to one record alone."""
    if not made:
        return ""
    declared = [(each["label"], each["visits"]) for each in document["environments"] if each["visits"]]
    to_users = [promise for promise in made if promise.relation == USER]
    if not declared:
        return (
            "Nothing is declared: every promise is to one record. Where one user has several, give the environment "
            "visits_per_user, and ask for level: user."
        )
    parts = []
    for label, visits in declared:
        apart = f", {number(visits['apart'])} or more records apart" if visits["apart"] > 1 else ""
        parts.append(f"on {label} a user has up to {number(visits['most'])} records{apart} (declared)")
    words = _joined(parts)
    if to_users:
        covers = _how_many(len(to_users), len(made))
        words += f" {covers[0].upper()}{covers[1:]} all records of a user together."
    if len(to_users) < len(made) and any(visits["most"] > 1 for _, visits in declared):
        words += f" Warning: ids repeat, and {_how_many(len(made) - len(to_users), len(made))} one record alone."
        alone = [
            (cell["label"], cell["of_user"])
            for cell in private_cells(document)
            if present(cell["promise"])["relation"] != USER
        ]
        words += "".join(
            f" To a user the ledger of {label} accounts "
            + ("no finite ε." if paid["epsilon"] is None else f"ε = {number(paid['epsilon'])}.")
            for label, paid in [(label, paid) for label, paid in alone if paid][:MOST]
        )
    return words


def _how_many(n: int, of: int) -> str:
    """Whose promises cover something, in words."""
    if n == of:
        return "the promise covers" if of == 1 else "every promise covers"
    return f"{number(n)} of {number(of)} promises cover{'s' if n == 1 else ''}"


def _expected(made: list[Promise], people: int | None) -> str:
    deltas = sorted({promise.delta for promise in made if promise.delta > 0})
    if not deltas:
        return "No δ is needed: the promise is pure." if made else ""
    if people is None:
        return f"δ = {', '.join(map(number, deltas))}; without the number of people it cannot be judged."
    parts = []
    for delta in deltas:
        allowed = f"the promise may fail for {number(delta * people)} of {number(people)} people"
        parts.append(
            f"δ = {number(delta)}: {allowed}"
            if delta * people >= 1
            else f"δ = {number(delta)}: n × δ = {number(delta * people)}"
        )
    return _joined(parts)


def _runs(document: Report) -> str:
    private = private_cells(document)
    if not private:
        return "The promise is that of one run." if document["audits"] else ""
    n_runs = sum(cell["replications"] for cell in private)
    text = f"Every ε is that of one run; this report has {number(n_runs)} private runs."
    data = {each["label"]: each["data"] for each in document["environments"]}
    if any(data[cell["environment"]] in ("private", "public") for cell in private):
        return text
    return f"{text} Each draws its own {unit_of(document['environments'])}, so their losses do not add up."


def _together(document: Report) -> str:
    """Budget that all runs on real data spend together: by their budget book, or else those of this report."""
    kinds = {each["label"]: each["data"] for each in document["environments"]}
    booked = {book["environment"] for book in document["books"]}
    real = [cell for cell in private_cells(document) if kinds[cell["environment"]] in ("private", "public")]
    places = dict.fromkeys(cell["environment"] for cell in real if cell["environment"] not in booked)
    parts = [_booked(book) for book in document["books"]]
    parts += [_composed(real, place, is_public=kinds[place] == "public") for place in places]
    bare = [place for place, kind in kinds.items() if kind == "private" and place not in booked]
    rest = f"No budget book is named for {', '.join(bare)}: earlier runs over these rows are not counted." if bare else ""
    return " ".join(filter(None, ["; ".join(parts) + "." if parts else "", rest]))


def _booked(book: BookSummary) -> str:
    """Sums of a budget book, beside the suite's own runs and its most costly cell."""
    if book["problem"] is not None:
        return f"The budget book {book['name']} cannot be read: {book['problem']}"
    at = "" if book["delta"] is None else f" at δ = {number(book['delta'])}"
    spent, own, cell = (
        "no finite ε" if book[key] is None else f"ε = {number(book[key])}"
        for key in ("spent", "suite_spent", "most_costly_cell")
    )
    parts = []
    if book["earlier"]:
        parts.append(f"{number(book['earlier'])} of these runs came before the book")
    if book["unprotected"]:
        parts.append(f"{number(book['unprotected'])} results without noise came before it, and no budget covers them")
    return (
        f"All runs on {book['environment']}, of every suite, have spent {spent} of {number(book['budget'])}{at}; those "
        f"charged to this suite {own}, its most costly cell {cell} (budget book {book['name']}, {number(book['entries'])} "
        f"entries, the last {present(book['head'])[:12]})" + "".join(f"; {each}" for each in parts)
    )


def _composed(cells: list[BenchmarkCell], environment: str, *, is_public: bool) -> str:
    here = [cell for cell in cells if cell["environment"] == environment]
    n_runs, delta = sum(cell["replications"] for cell in here), present(here[0]["promise"])["delta"]
    whose = f"The data of {environment} are public. On private data the" if is_public else f"On {environment}, the"
    runs = f"{whose} {number(n_runs)} private runs of this report {'would ' if is_public else ''}compose to"
    mu = composed(here)
    if mu is None:
        return f"{runs} no finite µ"
    at_most = f"at most µ = {number(mu)}, ε = {number(epsilon_of(mu, delta))} at δ = {number(delta)}"
    return f"{runs} {at_most}, if somebody sees the results of all"


def _noise(document: Report) -> str:
    sources = noise_sources(document)
    if not sources:
        return ""
    text = _joined(sources)
    if any(source.startswith("reproducible") for source in sources):
        text += " Anybody with the seeds in the evidence can subtract this noise: for experiments, never for a deployment."
    return text


def _who(document: Report) -> str:
    deployment = document["deployment"]
    parts = []
    if deployment is not None:
        parts.append(f"curator {deployment['curator']} (declared)")
        approver = deployment["approver"] or _NOT_DECLARED
        on = f" on {deployment['approved']}" if deployment["approved"] else ""
        parts.append(f"approved by {approver}{on} (declared)" if deployment["approver"] else f"approver {_NOT_DECLARED}")
    else:
        parts.append(f"curator and approver {_NOT_DECLARED}")
    makers = document["provenance"]["makers"]
    people = [f"{maker['user'] or 'somebody'} on {maker['host'] or 'some machine'}" for maker in makers]
    if people:
        parts.append(f"computed by {', '.join(dict.fromkeys(people))} (recorded)")
    return _joined(parts)


def _code(document: Report) -> str:
    builds = dict.fromkeys(
        f"bandana {maker['versions'].get('bandana', origin.NOT_RECORDED)}, git commit {origin.commit_of(maker)}"
        for maker in document["provenance"]["makers"]
    )
    return _joined(list(builds)) if builds else f"Code {origin.NOT_RECORDED}."


def _expires(deployment: Deployment | None) -> str:
    if deployment is not None and deployment["expires"]:
        return f"Expires {deployment['expires']} (declared)."
    return f"Expiry {_NOT_DECLARED}; changed code, parameters or data need a new report."


def _declared(document: Report) -> list[Block]:
    """Declarations of the operator, which nothing here can check."""
    deployment = document["deployment"]
    if deployment is None:
        return []
    unprotected = None if deployment["unprotected"] is None else ", ".join(deployment["unprotected"])
    pairs = [
        ("Purpose", deployment["purpose"]),
        ("Data source", deployment["data_source"]),
        ("License", deployment["license"]),
        ("Release", deployment["release_type"]),
        ("Unprotected", unprotected),
        ("Retention", deployment["retention"]),
    ]
    return [
        heading("Declared by the operator, not measured"),
        fact_list([(term, _NOT_DECLARED if text is None else text) for term, text in pairs]),
    ]
