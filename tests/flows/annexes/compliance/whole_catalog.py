"""Evidence as `bandana audit-catalog` leaves it, without its store: `bandana verify` can run such an audit again."""

from dataclasses import asdict, replace
from functools import partial

from bandana.audits.subjects import subjects
from bandana.flows.cells.replays import audit_of_subject
from bandana.flows.keys import identity
from bandana.flows.keys.provenance import Making, about_audits
from bandana.flows.plan.made_by import subject_roots


def audited(label, effort):
    """The audit of a subject, with what was requested and what computed it in its provenance."""
    making, made = Making(), identity.made_by(subject_roots(label))
    outcome = audit_of_subject(subjects()[label](), effort, partial(about_audits, made=made))
    request = {"whole catalog": label, "effort": asdict(effort)}
    return replace(outcome, provenance=making.record(is_anonymous=True) | {"of": request, "made": made})
