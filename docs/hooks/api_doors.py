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
        "algorithms",
        "Algorithms",
        "The catalog, and the classes behind it. [Algorithms](../../algorithms/index.md) has formulas and guarantees; "
        "[which algorithm for my problem](../../algorithms/choose.md) chooses among them.",
        (
            Part(
                "The catalog",
                "Every algorithm in each trust model and with each guarantee.",
                (
                    "bandana.algorithms.catalog: CATALOG known names of_name find",
                    "bandana.algorithms.entry: Entry Settings RegretBound",
                    "bandana.algorithms.parameters: Parameter",
                    "bandana.algorithms.claim: Claim",
                ),
            ),
            Part(
                "Playing one",
                "The loop: a single online run is a batch of one.",
                (
                    "bandana.algorithms.run",
                    "bandana.algorithms.observers",
                ),
            ),
            Part(
                "Finitely many arms",
                "",
                (
                    "bandana.algorithms.bandits.finite_arm.episodic_ucb: EpisodicUCB ucb adar_ucb adap_ucb adap_klucb",
                    "bandana.algorithms.bandits.finite_arm.growing_batches: BatchedKLUCB BatchedIMED dp_klucb dp_imed",
                    "bandana.algorithms.bandits.finite_arm.thompson: BatchedThompson thompson dp_thompson",
                    "bandana.algorithms.bandits.finite_arm.exp3: BatchedExp3 exp3",
                    "bandana.algorithms.bandits.finite_arm.successive_elimination: SuccessiveElimination",
                    "bandana.algorithms.bandits.finite_arm.successive_elimination: successive_elimination dp_se",
                    "bandana.algorithms.bandits.finite_arm.tree_ucb: TreeUCB tree_ucb dp_ucb",
                ),
            ),
            Part(
                "Best-arm identification",
                "",
                (
                    "bandana.algorithms.bandits.best_arm.top_two: TopTwo top_two adap_tt adar_tt",
                    "bandana.algorithms.bandits.best_arm.top_two: transport_top_two dp_tt gaussian_tt",
                    "bandana.algorithms.bandits.best_arm.rules: Rules DifferenceRules Judged",
                    "bandana.algorithms.bandits.best_arm.transport: TransportRules",
                    "bandana.algorithms.bandits.best_arm.halving: Halving sequential_halving dp_bai gaussian_bai",
                ),
            ),
            Part(
                "Linear and contextual bandits",
                "",
                (
                    "bandana.algorithms.bandits.linear.phased_elimination: PhasedElimination gope adar_gope adar_gope_pure",
                    "bandana.algorithms.bandits.contextual.oful: RarelySwitchingOFUL oful adar_oful",
                    "bandana.algorithms.bandits.contextual.lin_priv: LinPriv lin_priv",
                    "bandana.algorithms.bandits.contextual.lin_ucb: LinUCB LinUCBSettings",
                    "bandana.algorithms.bandits.contextual.greedy: GreedyRidge GreedySettings",
                    "bandana.algorithms.bandits.contextual.batched: BatchedLinUCB batched_lin_ucb",
                ),
            ),
            Part(
                "Kernel bandits",
                "",
                (
                    "bandana.algorithms.bandits.kernel.gp_ucb: GPUCB GPUCBSettings",
                    "bandana.algorithms.bandits.kernel.pooled_gp_ucb: PooledGPUCB",
                    "bandana.algorithms.bandits.kernel.fixed_set: FixedSetGPUCB FixedSetMessages",
                    "bandana.algorithms.bandits.kernel.pooled_forms: PooledSettings",
                    "bandana.algorithms.bandits.capri.capri: ProjectedElimination",
                    "bandana.algorithms.bandits.capri.forms: CAPRI",
                ),
            ),
            Part(
                "Reinforcement learning",
                "",
                (
                    "bandana.algorithms.rl.mixture.vtr: UCRLVTR",
                    "bandana.algorithms.rl.mixture.vtr_plus: UCRLVTRPlus",
                    "bandana.algorithms.rl.mixture.forms: VTR",
                    "bandana.algorithms.rl.linear_mdp.batched_lsvi: BatchedLSVI",
                    "bandana.algorithms.rl.linear_mdp.forms: LSVI",
                    "bandana.algorithms.rl.tabular.ucb_vi: UCBVI",
                    "bandana.algorithms.rl.tabular.forms: UCBVISettings",
                ),
            ),
            Part(
                "Lower bounds",
                "What no algorithm with the same claim can beat.",
                (
                    "bandana.algorithms.lower_bounds.selection: lower_bound",
                    "bandana.algorithms.lower_bounds.lower_bound: LowerBound Reach",
                    "bandana.algorithms.lower_bounds.best_arm: LeastRounds least_rounds",
                ),
            ),
        ),
    ),
    Door(
        "your-own",
        "Your own algorithm",
        "What an algorithm or an environment of yours must offer. [Your algorithm in ten "
        "lines](../../tutorials/ten-lines.md) and [Audit your own](../../audit-your-own.md) begin with an example.",
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
    Door(
        "environments",
        "Environments",
        "Who answers: simulations, real trials, and tables of your own. [Fields of a spec](../spec.md) has them as YAML.",
        (
            Part(
                "Arms",
                "",
                (
                    "bandana.algorithms.environments.bandits",
                    "bandana.algorithms.environments.real_arms",
                    "bandana.algorithms.environments.linear",
                ),
            ),
            Part(
                "Users with contexts",
                "",
                (
                    "bandana.algorithms.environments.contexts",
                    "bandana.algorithms.environments.sphere",
                    "bandana.algorithms.environments.kernel_functions",
                    "bandana.algorithms.environments.benchmark_functions",
                ),
            ),
            Part(
                "Episodes",
                "",
                (
                    "bandana.algorithms.environments.mdps",
                    "bandana.algorithms.environments.mdp_instances",
                    "bandana.algorithms.environments.tabular_instances",
                    "bandana.algorithms.environments.episodes",
                ),
            ),
            Part(
                "Real and logged data",
                "",
                (
                    "bandana.algorithms.environments.logged",
                    "bandana.algorithms.environments.simulated_log",
                    "bandana.algorithms.environments.off_policy",
                    "bandana.algorithms.environments.tables",
                ),
            ),
        ),
    ),
    Door(
        "audits",
        "Audits",
        "Measures a privacy loss from below, and searches for a run that breaks the proof. [Audits](../../audits.md) "
        "explains each step.",
        (
            Part(
                "An audit",
                "From a claim to a verdict.",
                (
                    "bandana.audits.audit",
                    "bandana.audits.trial",
                    "bandana.audits.claims: parse ClaimError",
                    "bandana.audits.outcome: Verdict Effort Outcome Numbers",
                    "bandana.audits.subjects: Subject subjects selected",
                ),
            ),
            Part(
                "Neighbors and replays",
                "",
                (
                    "bandana.audits.neighbors.pairs",
                    "bandana.audits.neighbors.worst_pair: WorstPair find",
                    "bandana.audits.replays.replay: Replays replay",
                    "bandana.audits.replays.measure: Measurement measure",
                ),
            ),
            Part(
                "Bounds",
                "Lower confidence bounds, from scores alone.",
                (
                    "bandana.audits.bounds.methods",
                    "bandana.audits.bounds.error_rates",
                    "bandana.audits.bounds.tradeoff_bounds",
                    "bandana.audits.bounds.divergence_bounds",
                    "bandana.audits.bounds.evalues",
                    "bandana.audits.bounds.one_run",
                    "bandana.audits.bounds.power",
                ),
            ),
            Part(
                "Searches without replays",
                "",
                (
                    "bandana.audits.searches.deterministic",
                    "bandana.audits.searches.noise",
                    "bandana.audits.searches.sampling",
                    "bandana.audits.searches.counterexample",
                ),
            ),
            Part("Planted faults", "", ("bandana.audits.faults.fault", "bandana.audits.faults.releases")),
            Part(
                "Other libraries' accountants",
                "",
                (
                    "bandana.flows.annexes.crosscheck.second_opinions",
                    "bandana.flows.annexes.crosscheck.library_defects",
                ),
            ),
        ),
    ),
    Door(
        "evidence",
        "Evidence and reports",
        "What an audit leaves behind, who can check it, and how it is shown.",
        (
            Part(
                "Evidence",
                "[What it shows](../../evidence.md), and [how to verify it](../../how-to/verify-evidence.md).",
                (
                    "bandana.audits.evidence.archive",
                    "bandana.flows.annexes.compliance.evidence.recompute",
                    "bandana.flows.annexes.compliance.evidence.lines",
                    "bandana.flows.annexes.compliance.evidence.bundle",
                    "bandana.flows.annexes.compliance.evidence.signature",
                ),
            ),
            Part(
                "Reports",
                "A report is a document, of which the page, the PDF and the JSON are renderings.",
                (
                    "bandana.audits.reporting.render: render_html render_pdf",
                    "bandana.audits.reporting.document: validate",
                    "bandana.audits.reporting.difference: compare difference",
                    "bandana.audits.reporting.sections.strength: Promise Strength strength_of odds right_guesses",
                    "bandana.flows.annexes.compliance.registry.entry: registry_entry RegistryError",
                ),
            ),
        ),
    ),
)
"""The pages in the order of the menu: what users need first."""
