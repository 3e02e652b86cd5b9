"""The deterministic audit: search for a run that breaks the proof.

Record a run on D, then script the same run on D' (one record replaced): both act alike, as in a proof of adaptive
composition. Then for every release: the schedule and the actions must be the same; the exact value must be the same if the
replaced record lies outside the release's span, and may move by at most the mechanism's sensitivity if it lies inside;
the events that the ledger holds against the worst record must compose to no more than the claim; and the released state
must be the same after every record, to the last bit. A single violation is a proof that the privacy argument fails;
Hypothesis searches for one among small cases and shrinks it, `bandana.audits.searches.walk` changes every record, and
`bandana.audits.searches.horizon` plays as many rounds as a benchmark does.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from bandana.algorithms.protocol import Algorithm
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.outcome import DETERMINISTIC
from bandana.audits.searches import checks
from bandana.audits.searches.cases import SHORT, Case, CaseSpace
from bandana.audits.searches.counterexample import Counterexample
from bandana.audits.searches.horizon import first_rows, walk_horizon
from bandana.audits.searches.request import Finding, Request
from bandana.audits.searches.sides import play
from bandana.audits.searches.walk import n_cases_of, walk
from bandana.privacy_core import GaussianDP, Interval, Participation


def examine(algorithm: Algorithm, case: Case, reward_range: Interval, claim: GaussianDP | None) -> Counterexample | None:
    """Runs one case on both sides and checks every release.

    Args:
      algorithm: what to audit.
      case: its rewards lie in `reward_range`; the replacement may lie outside.
      reward_range: the declared range.
      claim: what the events on the worst record must not exceed; None compares them with nothing, for noise that is not
        Gaussian. A release without noise is a violation in any case.
    """
    return checks.first_violation(play(algorithm, case, reward_range), claim)


def examine_pair(
    algorithm: Algorithm, pair: Pair, claim: GaussianDP | None, seed: int, users: Participation | None = None
) -> Counterexample | None:
    """Examines a pair of data sets that was found elsewhere, as `examine` does.

    Args:
      algorithm: what to audit.
      pair: D and D'; the declared range is that of D.
      claim: see `examine`.
      seed: of the noise.
      users: which records may be one user's, where the claim is on all of them.
    """
    return checks.first_violation(play(algorithm, Case.of(pair, seed), pair.data.reward_range, users), claim)


def search(
    algorithm: Algorithm,
    reward_range: Interval,
    claim: GaussianDP | None,
    max_examples: int,
    max_rounds: int = SHORT,
    shrinks: bool = True,
    private_records: bool = False,
) -> Counterexample | None:
    """Searches tables, records and replacements for a counterexample, the same ones each time, and shrinks it.

    Most tables leave every decision close: all arms have earned the same, so that one reward may tip the next one. The
    others are drawn cell by cell. Users of episodes stay, walk on, go where the action says, or wherever bytes send them.
    Replacements may leave the declared range, by far or by little: a promise holds whatever a neighbor holds. So contexts
    that are too long are tried as well (`CaseSpace.outside`), unless the algorithm raises.

    Args:
      algorithm: what to audit.
      reward_range: the declared range.
      claim: see `examine`.
      max_examples: how many cases to try.
      max_rounds: longest table; one case in four may be longer than 24 rounds.
      shrinks: look for the smallest counterexample; without, any one will do.
      private_records: whether a record is what its user brings, contexts or states, and the rewards, or the rewards alone.
    """
    last: list[Counterexample] = []
    space = CaseSpace.of(algorithm, reward_range, max_rounds, private_records)

    def breaks(case: Case) -> bool:
        if (violation := examine(algorithm, case, reward_range, claim)) is not None:
            last[:] = [violation]
        return violation is not None

    try:
        smallest = find(
            space.cases(),
            breaks,
            settings=settings(
                max_examples=max_examples,
                derandomize=True,
                database=None,
                deadline=None,
                phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
    except NoSuchExample:
        return _outside(algorithm, space, claim)
    return last[0] if last[0].case == smallest else examine(algorithm, smallest, reward_range, claim)


def _outside(algorithm: Algorithm, space: CaseSpace, claim: GaussianDP | None) -> Counterexample | None:
    for case in space.outside():
        try:
            violation = examine(algorithm, case, space.reward_range, claim)
        except Exception:  # anybody's code may refuse such contexts: then it releases nothing that is made of them
            continue
        if violation is not None:
            return violation
    return None


_LONGEST_SEARCHED, _PART, _FIRST = 24, 8, 4


class Deterministic:
    """The search for a counterexample: among generated cases, every record in turn, and on the least favorable pair."""

    name = DETERMINISTIC

    def examine(self, request: Request) -> Finding:
        """Shrinks what it finds, unless any counterexample will do; an error has a note on the rewards that were played."""
        try:
            return self._examine(request)
        except ValueError as error:
            span = request.trial.table.reward_range
            error.add_note(
                f"any reward in the declared range [{span.low:g}, {span.high:g}] may come: where noise has a grid, round "
                "rewards to it before they are released"
            )
            raise

    def _examine(self, request: Request) -> Finding:
        trial, limit = request.trial, request.book_limit
        rounds, shrinks = min(_LONGEST_SEARCHED, trial.table.n_users), not request.until_caught
        span, examples = trial.table.reward_range, request.effort.examples
        n_cases, seed = n_cases_of(trial.algorithm, trial.table, 2 * request.effort.replays), request.effort.seed

        def generated(n: int) -> Counterexample | None:
            return search(trial.algorithm, span, limit, n, rounds, shrinks, trial.private_records)

        # What most planted faults do shows in the first cases, and what is hidden sooner in the walk than in more of them.
        example, coverage = generated(-(-examples // _PART) if request.until_caught else examples), None
        if example is None:
            example, coverage = walk(trial.algorithm, trial.table, limit, n_cases, seed, trial.private_records, shrinks)
        if example is None and request.until_caught:
            example = generated(examples)
        # What one record may move was searched above; of users, every pair that is replayed is examined.
        for pair in () if example else (request.least_favorable.pair, *(() if trial.users is None else request.canaries)):
            example = example or examine_pair(trial.algorithm, pair, limit, seed, trial.users)
        # At its test budget an honest algorithm is walked no second time; of a planted fault this is the last resort.
        if trial.whole is not None and example is None and (request.until_caught or not trial.is_test_budget):
            whole = trial.whole.table
            short = [first_rows(whole, _FIRST * trial.table.n_users)] if request.until_caught else []
            for table in (*short, whole):  # a planted fault begins soon after the last replayed record
                if example is None:
                    example, walked = walk_horizon(trial.whole.algorithm, table, seed, trial.private_records)
            if coverage is not None:
                coverage = replace(coverage, walked=walked.rounds, walked_alone=walked.alone, horizon=trial.whole.horizon)
        return Finding(bool(example), counterexample=None if example is None else example.describe(), coverage=coverage)
