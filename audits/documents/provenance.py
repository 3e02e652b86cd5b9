"""Origin of results, as documents hold it."""

from __future__ import annotations

from typing import Annotated

from bandana.audits.documents.fields import Count, Document, Moment, Size


class Blas(Document):
    """One library."""

    library: Annotated[str, "Name and version."]
    kernel: Annotated[str, "Processor type that its kernels are written for."]
    threads: Annotated[Size, "Number of threads."]


class Installation(Document):
    """Software and machine that computed a result, and when."""

    began: Annotated[Moment, "Time at which the computation (the first of several) began, ISO 8601 with offset."]
    ended: Annotated[Moment, "Time at which the computation (the last of several) ended, ISO 8601 with offset."]
    versions: Annotated[dict[str, str], "Name -> version of the software that computes numbers."]
    system: Annotated[str, "Operating system, machine and C library."]
    processor: Annotated[str, "Model name of the processor."]
    target: Annotated[str, "Processor type that Numba compiles for."]
    features: Annotated[list[str], "Instruction sets that NumPy uses."]
    blas: Annotated[list[Blas], "Linear-algebra libraries in use."]
    sources: Annotated[str, "SHA-256 over the sources of the package, hexadecimal."]
    commit: Annotated[str | None, "Git commit of the sources; null: in no checkout."]
    is_clean: Annotated[bool | None, "Whether the sources match the commit; null: no commit."]
    user: Annotated[str | None, "Name in the operating system; null: omitted."]
    host: Annotated[str | None, "Name of the machine; null: omitted."]


class Provenance(Installation):
    """Provenance of one result; null: not recorded."""


class Maker(Installation):
    """Results with the same provenance, possibly at different times."""

    blocks: Annotated[Count, "Number of blocks of replications."]
    audits: Annotated[Count, "Number of audits."]


class NotRecorded(Document):
    """Results without recorded provenance."""

    blocks: Annotated[Count, "Number of blocks of replications."]
    audits: Annotated[Count, "Number of audits."]


class ReportProvenance(Document):
    """Provenance of the results, as stored with them."""

    began: Annotated[Moment | None, "Time at which the first computation began; null: not recorded."]
    ended: Annotated[Moment | None, "Time at which the last computation ended; null: not recorded."]
    makers: Annotated[list[Maker], "Installations that computed the results, those with most results first."]
    not_recorded: NotRecorded
