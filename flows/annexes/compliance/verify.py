"""Lines of `bandana verify`: each statement of evidence, a report or a bundle beside the recomputed one.

The signature comes first, and a bundle that was changed ends there. Nothing of the sender's runs: of the spec that a report
quotes, only what the catalog holds is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from rich.table import Table

from bandana.audits.contents import numbers_sha256
from bandana.audits.documents.report import Report
from bandana.audits.evidence import UnusableEvidence, read
from bandana.audits.names import titled, titles_of, with_titles
from bandana.audits.outcome import Outcome
from bandana.audits.reporting import origin, validate
from bandana.audits.reporting.document import REPORT
from bandana.flows.annexes.compliance import strangers
from bandana.flows.annexes.compliance.catalog_words import with_catalog
from bandana.flows.annexes.compliance.evidence import one_file
from bandana.flows.annexes.compliance.evidence.bundle import README, Bundle, is_bundle, read_bundle
from bandana.flows.annexes.compliance.evidence.bundle import REPORT as REPORT_FILE
from bandana.flows.annexes.compliance.evidence.lines import OTHER_CODE, Line, Verification, in_part
from bandana.flows.annexes.compliance.evidence.recompute import verify
from bandana.flows.annexes.compliance.evidence.report import check_report, find, read_report
from bandana.flows.annexes.compliance.evidence.signature import PUBLIC_KEY
from bandana.flows.annexes.compliance.evidence.standalone import (
    check_manifest,
    check_sealed,
    is_evidence,
    of_report,
    unpacked,
)
from bandana.flows.annexes.compliance.packing import LOCK, SPEC_FILES, readme
from bandana.flows.annexes.compliance.rebuilt import PART, Quoted, check_rebuilt
from bandana.flows.annexes.compliance.replay import Replayed, not_run, replayed
from bandana.flows.keys import checkout, provenance
from bandana.flows.own.code import nothing_runs
from bandana.flows.results.audit_report import FORMATS, rendered
from bandana.flows.results.report_document import audit_documents
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError, printable, shortened

_LOCKED = re.compile(r"[a-z0-9][a-z0-9._-]*==[a-z0-9][a-z0-9.+!_-]*")
_QUICK = "left out by --quick"


@dataclass(frozen=True)
class Request:
    """The options of `bandana verify`.

    Attributes:
      path: an evidence file, the JSON file of a report, or a bundle.
      replay: how many blocks are run again, such as `5` or `1%`; None: none.
      spec: an experiment of the reader's own, whose files may be read and run; None: the one that a report quotes, of which
        only what the catalog holds is used.
      key: public key that a bundle must be signed with.
      is_quick: searches and planted faults are not run again.
      advance: is told when an audit was run again.
    """

    path: Path
    replay: str | None = None
    spec: Path | None = None
    key: Path | None = None
    is_quick: bool = False
    advance: Callable[[str], None] = lambda label: None


@dataclass(frozen=True)
class Answer:
    """The result of a verification.

    Attributes:
      verification: all lines.
      again: what was run again; None where nothing was.
      notes: how the evidence came to be.
      titles: label of each audit -> its title.
    """

    verification: Verification
    again: Replayed | None = None
    notes: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)


def check(request: Request) -> Answer:
    """Recomputes an evidence file, a report or a bundle.

    Raises:
      SpecError: nothing can be recomputed from it, or the request is wrong.
    """
    if request.is_quick and (request.replay or request.spec):
        raise SpecError("--quick: runs nothing again; leave out --replay and --spec")
    with _mistakes(request.path), nullcontext() if request.spec else nothing_runs():
        if is_bundle(request.path):
            return _check_bundle(request)
        if request.key is not None:
            raise SpecError("--key: only a bundle is signed")
        if request.path.suffix == ".json":
            return _check_report(request, request.path, "report", None)
        return _check_lone_evidence(request)


@contextmanager
def _mistakes(path: Path) -> Iterator[None]:
    """A file that holds other kinds of values than its readers expect is the user's mistake, as a damaged one is."""
    try:
        yield
    except SpecError:
        raise
    except UnusableEvidence as error:
        raise SpecError(_in_a_line(error)) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise SpecError(f"{path}: cannot be used: {type(error).__name__}: {_in_a_line(error)}") from error


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _check_evidence(path: Path) -> Verification:
    return with_catalog(verify(path), read(path).outcome)


def _check_lone_evidence(request: Request) -> Answer:
    path = request.path
    outcome = read(path).outcome
    experiment: Quoted | str = "needs the experiment: --spec SPEC.yaml"
    if request.spec is not None:
        experiment = Quoted(load_spec(request.spec))
    elif path.parent.name == "evidence" and (beside := path.parent.parent / SPEC_FILES[0]).is_file():
        experiment = _strangers(beside.read_text(encoding="utf-8"))
    verification, again = _run_again(request, _check_evidence(path), [outcome], experiment)
    name = outcome.subject.get("name", "")
    return Answer(verification, again, tuple(told(path)), {name: titled(name, outcome.claim.statement)})


def _check_report(request: Request, path: Path, kind: str, bundle: Bundle | None) -> Answer:
    """A report beside all that it is made of: its evidence, its replications, its spec, and the code here."""
    document = read_report(path)
    form = _check_form(document)
    if form.is_ok is False:
        return Answer(of_report(kind, document, replace(check_report(path, document), lines=(form,))))
    checked = check_report(path, document, _check_evidence)
    experiment = _strangers(document["spec"]) if request.spec is None else Quoted(load_spec(request.spec))
    listed = {file["path"]: find(path, file["path"]) for file in document["evidence"]["files"]}
    places = {name: place for name, place in listed.items() if place is not None}
    lines = [form, *checked.lines]
    if bundle is not None:
        lines += [*check_manifest(bundle, document, checked.audits), *_check_code(bundle)]
    if not checked.is_refused:
        lines += in_part(PART, check_rebuilt(document, places, experiment))
    if bundle is not None and not any(line.is_ok is False for line in lines):
        lines += _check_derived(bundle, document, experiment)
    verification = of_report(kind, document, replace(checked, lines=tuple(lines)))
    outcomes = [read(place).outcome for place in checked.evidence.values()]
    again = None
    if outcomes and not verification.is_refused:
        verification, again = _run_again(request, verification, outcomes, experiment)
    return Answer(verification, again, titles=titles_of(document))


def _strangers(text: str) -> Quoted | str:
    """The experiment that came with evidence; or why it cannot be used."""
    try:
        return Quoted(strangers.parse(text))
    except strangers.NamesOwn as error:
        return str(error)
    except SpecError:
        return "it quotes no spec of an experiment that this version reads"


def _run_again(
    request: Request, verification: Verification, outcomes: list[Outcome], experiment: Quoted | str
) -> tuple[Verification, Replayed | None]:
    """The verification with searches, planted faults and blocks run again, in place of lines that need them."""
    if request.is_quick:
        again = Replayed(tuple(not_run(_QUICK)))
    else:
        plan, reason = (None, experiment) if isinstance(experiment, str) else (experiment.plan, "")
        again = replayed(outcomes, request.replay, plan, reason=reason, advance=request.advance)
    is_whole = again.n_drawn == again.n_units
    blocks = "scores" if is_whole else f"{again.n_drawn} of {again.n_units} blocks of scores"
    again = replace(again, lines=tuple(in_part(blocks, again.lines)))
    parts = {line.part for line in again.lines}
    kept = (line for line in verification.lines if line.is_ok is not None or line.is_claimed or line.part not in parts)
    if not is_whole or not again.n_units:
        can_run = again.n_units or request.is_quick
        words = "--replay runs blocks of them again" if can_run else "a replay needs the algorithm"
        what = "all other scores" if again.n_drawn else "scores"
        scores = Line(what, "as stated", words, None, what, is_claimed=True)
        again = replace(again, lines=(*again.lines, scores))
    return replace(verification, lines=(*kept, *again.lines)), again


def _check_form(document: Report) -> Line:
    """Checks that a report has the form of this version, and no field contradicts another."""
    if document["schema"] != REPORT:
        return Line("report: form", document["schema"], OTHER_CODE, False, PART)
    try:
        validate(document)
    except ValueError as error:
        return Line("report: form", document["schema"], str(error), False, PART)
    return Line("report: form", document["schema"], "as its schema says", True, PART)


def _check_bundle(request: Request) -> Answer:
    bundle = read_bundle(request.path)
    try:
        key = None if request.key is None else request.key.read_bytes()
    except OSError as error:
        raise SpecError(f"--key: {request.key}: cannot be read: {error.strerror}") from error
    sealed = check_sealed(bundle, key)
    notes = (f"signature {next(line for line in sealed if line.what == 'signature').recomputed}",)
    if any(line.is_ok is False for line in sealed):
        return Answer(Verification(tuple(sealed)), notes=notes)
    with unpacked(bundle) as report:
        answer = _check_report(request, report, "bundle", bundle)
    return replace(
        answer, verification=replace(answer.verification, lines=(*sealed, *answer.verification.lines)), notes=notes
    )


def _check_code(bundle: Bundle) -> Iterator[Line]:
    """The code that packed the bundle, which makes its page, its PDF and its verifier, beside the code here."""
    code = bundle.predicate.get("code")
    stated = code if isinstance(code, dict) else {}
    here, mine = checkout.sources(), checkout.checkout()
    is_same = stated.get("sources") == here
    words = "the same" if is_same else OTHER_CODE
    yield Line("manifest: code", f"{str(stated.get('sources'))[:16]}...", words, is_same, "manifest")
    is_formed = {*stated} == {"sources", "commit", "is_clean"} and stated["is_clean"] in (True, False, None)
    yield Line("manifest: code: form", str(len(stated)), "sources, commit, is_clean", is_formed, "manifest")
    is_same = mine is not None and {**stated, "sources": ""} == {"sources": "", **mine._asdict()}
    words = "the commit here" if is_same else "not the commit here, or none is"
    yield Line("manifest: commit", str(stated.get("commit"))[:16], words, is_same or None, "commit", is_claimed=True)


def _check_derived(bundle: Bundle, document: Report, experiment: Quoted | str) -> Iterator[Line]:
    """Every other file of a bundle beside what this version makes of the report; one that nothing makes is refused."""
    made = _derived(document, experiment)
    for name, content in bundle.files.items():
        stated, part = f"{len(content)} bytes", _PARTS.get(name, "files")
        if name in (REPORT_FILE, PUBLIC_KEY):
            continue
        if is_evidence(name):
            if name not in {file["path"] for file in document["evidence"]["files"]}:
                yield Line(name, stated, "is no file of the report", False, part)
        elif name == LOCK:
            listed = content.decode("utf-8", "replace").splitlines()
            wrong = next((line for line in listed if not _LOCKED.fullmatch(line)), None)
            yield Line(f"{name}: form", stated, "names and versions" if wrong is None else wrong, wrong is None, "files")
            yield Line(name, stated, "what the sender had installed", None, name, is_claimed=True)
        elif name not in made:
            is_own = name.startswith("audits/") and isinstance(experiment, str) and document["kind"] == "experiment"
            words = "not compared: needs the experiment" if is_own else "no file of this report"
            yield Line(name, stated, words, None if is_own else False, part)
        elif isinstance(again := made[name](), str):
            yield Line(name, stated, again, None, part)
        else:
            words = "as report.json gives it" if content == again else "is not what report.json gives with this version"
            yield Line(name, stated, words, content == again, part)
    for name in (README, one_file.NAME, SPEC_FILES[document["kind"] != "experiment"], LOCK):
        if name not in bundle.files:
            yield Line(name, "missing", "every bundle holds it", False, _PARTS.get(name, "files"))


_PARTS = {"report.html": "page", "report.pdf": "PDF", one_file.NAME: "verifier", **dict.fromkeys(SPEC_FILES, "spec")}


def _derived(document: Report, experiment: Quoted | str) -> dict[str, Callable[[], bytes | str]]:
    """Name -> what makes the content that a bundle packed by this version has; or says why it cannot."""
    made: dict[str, Callable[[], bytes | str]] = {
        SPEC_FILES[document["kind"] != "experiment"]: document["spec"].encode,
        one_file.NAME: one_file.source().encode,
        README: partial(readme, document),
    }
    documents = {"report": document}
    if document["kind"] == "experiment" and not isinstance(experiment, str):
        documents |= {f"audits/{slug}": single for slug, single in audit_documents(experiment.plan, document).items()}
    made |= {f"{stem}.{kind}": partial(_rendered, each, kind) for stem, each in documents.items() for kind in FORMATS}
    return made


def _rendered(document: Report, kind: str) -> bytes | str:
    try:
        return rendered(document, kind)
    except ImportError as error:
        return f"not compared: {error.name} is not installed"


def render(answer: Answer) -> Table:
    """The table of all lines."""
    table = Table("what", "stated", "recomputed", "ok")
    for line in answer.verification.lines:
        words = with_titles([str(each) for each in (line.what, line.stated, line.recomputed)], answer.titles)
        cells = (shortened(printable(each), 200) for each in words)
        table.add_row(*cells, {True: "yes", False: "NO", None: "-"}[line.is_ok])
    return table


def told(path: Path) -> list[str]:
    """Provenance of the evidence, and the hash of its numbers, which are the same whoever computes them again.

    Raises:
      UnusableEvidence: see `bandana.audits.evidence.read`.
    """
    made = origin.lines(provenance.read(read(path).outcome.provenance))
    return [*made, f"numbers   SHA-256 {numbers_sha256(path)}, without the lines above"]


def for_machines(path: Path, answer: Answer) -> JsonObject:
    """The verification in JSON's own types."""
    verification, again = answer.verification, answer.again
    return {
        "evidence": str(path),
        "is_verified": verification.is_verified,
        "is_refused": verification.is_refused,
        "compared": list(verification.compared),
        "not_compared": list(verification.not_compared),
        "only_the_sender_knows": list(verification.claimed),
        "verdict": verification.verdict,
        "subject": dict(verification.subject),
        "claim": verification.claim,
        "replayed": None
        if again is None or not again.n_drawn
        else {"n_drawn": again.n_drawn, "n_units": again.n_units, "entropy": again.entropy},
        "lines": [asdict(line) for line in verification.lines],
    }
