"""Draft entry for the public registry of deployments of differential privacy.

Field names and allowed values follow schemas/deployments-schema.yaml of github.com/opendp/deployments-registry-data at
3e9c812; the registry's own check has the last word.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field

from bandana.audits.documents.fields import AtLeast1, Document, Positive, Probability, RealDay, Text
from bandana.flows.spec.spec import ProductType, Sector


class Basic(Document):
    """The release, its curator and its purpose."""

    name: Annotated[Text, "Name of the release."]
    data_curators: Annotated[list[Text], AtLeast1, "Who publishes it."]
    description: Annotated[Text, "The release in a few words."]
    intended_use: Annotated[Text, "What it is for."]
    data_product_type: Annotated[ProductType, "Kind of the release."]
    data_product_region: Annotated[Text, "Region of the data or of the law."]
    publication_date: Annotated[RealDay, "Day of the first publication."]
    data_product_sector: Annotated[NotRequired[Sector], "Industry of the data."]


class DpVariant(Document, total=False):
    """Definition of privacy, and what it covers."""

    variant_name: Annotated[
        Literal["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"],
        "Definition in which the parameters are stated.",
    ]
    data_domain: Annotated[str, "Data that are protected."]
    unprotected_quantities: Annotated[str, "Quantities that are not protected."]


class PrivacyParameters(Document):
    """Parameters of the definition."""

    epsilon: Annotated[Positive, "Epsilon, in nats."]
    delta: Annotated[NotRequired[Probability], "Delta."]
    rho: Annotated[NotRequired[Positive], "Rho of zero-concentrated privacy."]


class PrivacyLoss(Document, total=False):
    """Unit of privacy and parameters."""

    privacy_unit: Annotated[str, "What one record is."]
    privacy_unit_details: Annotated[str, "Which data sets are neighbors."]
    privacy_parameters: PrivacyParameters
    privacy_parameters_details: Annotated[str, "What the parameters are of, and how they follow."]


class DeploymentModel(Document, total=False):
    """Who is trusted, and what is released when."""

    model_name: Annotated[Literal["Local", "Central", "Shuffle", "Federated", "Varies"], "Trust model."]
    model_name_details: Annotated[str, "The trust model in words."]
    actors: Annotated[str, "Who sees what."]
    release_type: Annotated[Literal["One release", "Many releases"], "Number of releases."]
    release_type_details: Annotated[str, "What is spent over all releases."]
    data_source_type: Annotated[Literal["Static", "Dynamic"], "Whether new data come in."]
    data_source_type_details: Annotated[str, "The same in words."]
    access_type: Annotated[Literal["Interactive", "Non-interactive"], "Whether the data can be queried."]
    access_type_details: Annotated[str, "The same in words."]


class Accounting(Document, total=False):
    """Accounting of losses."""

    post_processing: Annotated[str, "What is computed from released values."]
    composition: Annotated[str, "How releases compose."]


class Implementation(Document, total=False):
    """Code, and how it was checked."""

    preprocessing_and_hyperparameter_tuning: Annotated[str, "What was done with the data before."]
    mechanisms: Annotated[str, "Mechanisms, noise source, versions."]
    justification: Annotated[str, "Tests behind the choices."]


class Administrative(Document):
    """About the entry."""

    sources: Annotated[NotRequired[str], "Where more is published."]
    notes: Annotated[NotRequired[str], "Anything else."]
    registry_authors: Annotated[list[Text], AtLeast1, "Who wrote the entry."]


class RegisteredDeployment(Document):
    """The deployment."""

    basic: Basic
    dp_variant: NotRequired[DpVariant]
    privacy_loss: NotRequired[PrivacyLoss]
    deployment_model: NotRequired[DeploymentModel]
    accounting: NotRequired[Accounting]
    implementation: NotRequired[Implementation]
    administrative: NotRequired[Administrative]


class RegistryEntry(Document):
    """One entry, as the registry keeps it in a YAML file."""

    url_slug: Annotated[str, Field(pattern=r"^[a-z0-9_]+$"), "Name of the entry's page."]
    status: Annotated[Literal["Draft"], "State of the entry, which changes when it is submitted."]
    tier: Annotated[Literal[1, 2, 3], "How much the entry discloses."]
    deployment: RegisteredDeployment
