"""The block `deployment` of a spec: what the operator declares, which no computation can measure."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from bandana.flows.texts.fields import Count, OneOrSeveral, Strict

Words = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"\S")]
ProductType = Literal[
    "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries"
]
Sector = Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"]


class DeploymentSpec(Strict):
    """Declarations of the operator. The report shows it apart from what was measured; no number depends on it."""

    curator: Words = Field(description="Who holds the data and answers for the release.")
    purpose: Words = Field(description="What the release is for.")
    data_source: Words | None = Field(None, description="Where the data come from, and how people came to be in them.")
    license: Words | None = Field(None, description="License or legal basis of the use of the data.")
    people: Count | None = Field(
        None,
        description="Number of people in the data; delta is judged against it. Without it, the report takes the horizon.",
    )
    region: Words | None = Field(None, description="Region of the data or of the law that applies.")
    sector: Sector | None = Field(None, description="Industry that the data describe, as the public registry names it.")
    product: ProductType = Field(
        "Machine learning model", description="Kind of the released data product, as the public registry names it."
    )
    release_type: Literal["one release", "many releases"] | None = Field(
        None, description="Whether the results are published once or again and again."
    )
    unprotected: OneOrSeveral[Words] | None = Field(
        None, description="Quantities that are published without protection, one or several; `none` if there are none."
    )
    approver: Words | None = Field(None, description="Who approved the release.")
    approved: date | None = Field(None, description="Day of the approval, as YYYY-MM-DD.")
    retention: Words | None = Field(None, description="How long the data and results are kept, and who can reach them.")
    expires: date | None = Field(None, description="Day after which the release must be reviewed again, as YYYY-MM-DD.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.approved is not None and self.expires is not None and self.expires < self.approved:
            raise ValueError(f"expires must not lie before approved, got {self.expires} and {self.approved}")
        if self.approved is not None and self.approver is None:
            raise ValueError("approved needs approver: name who approved the release")
        return self

    def shown(self) -> Any:
        """The block as a report's document holds it; null is what was not declared."""
        return self.model_dump(mode="json")
