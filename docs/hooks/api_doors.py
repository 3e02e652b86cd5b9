"""What the Python API offers, by use: the pages of the reference, what each lists, and in which order."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """A table of a page.

    Attributes:
      title: its heading.
      about: one or two sentences above it.
      sources: a module, of which all public names are listed; or `module: Name Name`, of which these are.
    """

    title: str
    about: str
    sources: tuple[str, ...]


class Door(NamedTuple):
    """A page: what one kind of use needs.

    Attributes:
      file: its name, without an ending.
      title: its heading.
      about: what it is for.
      parts: its tables.
    """

    file: str
    title: str
    about: str
    parts: tuple[Part, ...]


DOORS = (
    Door(
        "run-and-audit",
        "Run and audit",
        "Benchmarks and audits from a script, a notebook or a test, without any server. [Use it from "
        "Python](../../how-to/python.md) shows them at work.",
        (
            Part(
                "In a script or a notebook",
                "Import from `bandana`.",
                (
                    "bandana.flows.api.run: run load",
                    "bandana.flows.api.tables: catalog",
                    "bandana.flows.annexes.anything.api: audit Audit",
                    "bandana.flows.api.result: Result Difference",
                    "bandana.flows.texts.mistakes: SpecError",
                ),
            ),
            Part(
                "In tests",
                "Import from `bandana.testing`; the fixture `private` needs no import.",
                ("bandana.testing: assert_private SuiteBudget",),
            ),
            Part(
                "Around other libraries",
                "Import from `bandana.primitives`: what a program of yours pays for another library's noise.",
                (
                    "bandana.flows.annexes.anything.foreign.prices: Price",
                    "bandana.flows.annexes.anything.foreign.tape: priced release",
                    "bandana.flows.annexes.anything.foreign.opacus: price_steps",
                ),
            ),
            Part(
                "Between real people",
                "Import from `bandana.live`; [its tutorials](../../how-to/ab-test.md#live-choose-among-four-prompts).",
                (
                    "bandana.flows.annexes.live.api: open restore",
                    "bandana.flows.annexes.live.secrecy: new_key",
                    "bandana.flows.annexes.live.policy: Policy Choice Privacy World ChoiceError",
                    "bandana.flows.annexes.live.store: StoreError",
                    "bandana.flows.annexes.live.estimates: arm_means effect ArmMean Effect",
                ),
            ),
        ),
    ),
    Door(
        "mechanisms",
        "Mechanisms",
        "What adds noise, and knows its sensitivity and its cost. Import from `bandana.privacy_core`; a [ledger](ledger.md) "
        "releases.",
        (
            Part(
                "Numbers and vectors",
                "Noise on a value.",
                (
                    "bandana.privacy_core.noise.mechanisms: Gaussian Laplace DiscreteGaussian Exact",
                    "bandana.privacy_core.noise.mechanisms: Mechanism is_selection without_noise",
                ),
            ),
            Part(
                "Matrices and regressions",
                "Noise on symmetric matrices, alone or with a vector.",
                (
                    "bandana.privacy_core.noise.matrices: SymmetricGaussian JointGaussian",
                    "bandana.privacy_core.noise.stacked",
                ),
            ),
            Part(
                "Choices",
                "A vector of scores goes in, the number of one of them comes out.",
                (
                    "bandana.privacy_core.noise.selections: Exponential NoisyMax PermuteAndFlip RandomizedResponse",
                    "bandana.privacy_core.noise.selections: AboveThreshold Selection",
                ),
            ),
            Part(
                "Sums that grow",
                "Running sums and sums of phases: by a tree, by a matrix factorization, or one message a user.",
                (
                    "bandana.privacy_core.sums: PrivateSum PhaseSum PhaseTotal LocalSum OpenPhase",
                    "bandana.privacy_core.tree: TreeSum",
                    "bandana.privacy_core.factorized: FactorizedSum",
                    "bandana.privacy_core.doubling: DoublingSum",
                    "bandana.privacy_core.accounting.factorization: factorize",
                ),
            ),
            Part(
                "The shuffle model",
                "Bits that a trusted shuffler mixes.",
                ("bandana.privacy_core.noise.shuffled: ShuffledBits",),
            ),
            Part(
                "What one record may contribute",
                "Bounds that are enforced before anything is released.",
                ("bandana.privacy_core.clipping",),
            ),
            Part(
                "Where noise comes from",
                "Reproducible noise for experiments, a secure source for private data.",
                ("bandana.privacy_core.noise.sources",),
            ),
        ),
    ),
    Door(
        "ledger",
        "Ledger and accounting",
        "What has been released, what that costs the worst record, and how much noise a promise needs. Import from "
        "`bandana.privacy_core`. [The privacy argument](../../privacy.md) proves what the ledger relies on.",
        (
            Part(
                "The ledger",
                "The one door between private data and everything that is decided from them.",
                (
                    "bandana.privacy_core.ledger",
                    "bandana.privacy_core.scripted",
                ),
            ),
            Part(
                "Accounting",
                "From events to a guarantee, and from a guarantee to the least noise.",
                (
                    "bandana.privacy_core.accounting.accountant",
                    "bandana.privacy_core.accounting.curve",
                ),
            ),
            Part(
                "Promises",
                "The privacy definitions, with exact conversions between them.",
                ("bandana.privacy_core.accounting.guarantees",),
            ),
            Part(
                "Events", "What one release costs the record that it touches.", ("bandana.privacy_core.accounting.events",)
            ),
            Part(
                "How releases touch a record",
                "Structures that noise is calibrated to.",
                ("bandana.privacy_core.accounting.structures",),
            ),
            Part(
                "Users with several records",
                "What a user pays who returns.",
                (
                    "bandana.privacy_core.accounting.participation",
                    "bandana.privacy_core.accounting.user_structures",
                    "bandana.privacy_core.accounting.users",
                ),
            ),
            Part(
                "Budget books",
                "One budget for one data set, over all runs: [budget books](../../book.md).",
                (
                    "bandana.flows.annexes.books.bookkeeping.book: BudgetBook Receipt State",
                    "bandana.flows.annexes.books.bookkeeping.known: DataSet Earlier",
                    "bandana.flows.annexes.books.bookkeeping.spending: budget_of",
                    "bandana.flows.annexes.books.bookkeeping.chain: Entry check_chain",
                ),
            ),
        ),
    ),
    Door(
        "your-own",
        "Your own algorithm",
        "What an algorithm or an environment of yours must offer. [Bring your own "
        "algorithm](../../bring-your-own.md) begins with an example.",
        (
            Part(
                "The protocol",
                "An algorithm has no generator and sees no noise: what it decides from, a ledger released.",
                (
                    "bandana.algorithms.protocol",
                    "bandana.algorithms.problem",
                    "bandana.algorithms.decision",
                    "bandana.algorithms.coins",
                ),
            ),
            Part(
                "Parts to build from",
                "Loops that restart, sums of regressions, and choices that do not depend on the last bit.",
                (
                    "bandana.algorithms.epochs: GrowingEpochs PreferringEpochs in_epochs",
                    "bandana.algorithms.regression.private_ridge: PrivateRidge Regularizer",
                    "bandana.algorithms.regression.noisy_sums: NoisySums exact_sums private_sums",
                    "bandana.algorithms.ties",
                ),
            ),
            Part(
                "Environments of your own",
                "A class in a file, or an entry point of a package.",
                (
                    "bandana.algorithms.environments.own_streams",
                    "bandana.algorithms.plugins",
                ),
            ),
            Part(
                "Checks",
                "What is wrong with an algorithm before it is audited.",
                ("bandana.audits.own.conformance: ProtocolError check_members check",),
            ),
        ),
    ),
)
"""The pages in the order of the menu: what users need first."""
