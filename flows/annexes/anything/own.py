"""A user's own algorithm, in one file outside the package: loaded, checked, audited, and the evidence written.

`FILE.py:NAME` names an algorithm that keeps the protocol, something that builds one, or a plain function
(rewards, seed) -> actions. Everything that is wrong with the file is the user's mistake, told with its line.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.random import SeedSequence

from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.episodes import Table, random_episodes
from bandana.algorithms.environments.tables import RewardTable, random_table, sphere_table
from bandana.algorithms.protocol import Algorithm
from bandana.audits.claims import ClaimError
from bandana.audits.outcome import INDEPENDENT, Effort, Outcome
from bandana.audits.own import conformance, white_box
from bandana.audits.trial import Trial
from bandana.flows.annexes.anything.data_sets import read_data
from bandana.flows.annexes.anything.files import ALGORITHM, FUNCTION, Loaded, apart, blamed_on, named, read
from bandana.flows.annexes.anything.functions import black_box
from bandana.flows.annexes.anything.functions.drawn import Menu
from bandana.flows.annexes.anything.functions.drawn_bounds import screened_by
from bandana.flows.annexes.anything.functions.plays import accepts_outside, adapted, affordable, check, constants, even_table
from bandana.flows.annexes.anything.given_pairs import Given, read_claim
from bandana.flows.annexes.anything.pairs.coupling import Coupling, compare_plays
from bandana.flows.annexes.anything.pairs.neighbors import base_tables, most_telling, replaced_users, users_of
from bandana.flows.annexes.anything.pairs.stages import audit_subject
from bandana.flows.annexes.anything.pairs.starts import Aside, set_aside
from bandana.flows.annexes.anything.pairs.subject import on_tables, prepared
from bandana.flows.folder.settings import is_anonymous
from bandana.flows.keys.provenance import Making, about_audits
from bandana.flows.running.child import beside, one_call
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import ApproxDP, Interval, Relation
from bandana.privacy_core.checks import small_delta

_DEFAULT_DELTA = 1e-5
_ARM_NAMES = ("n_actions", "n_arms", "arms")
_COVARIATES = {"context", "contexts", "states"}
_AS_ARMS = (
    "it played arms, where context, record.contexts and record.states are None: declare context_dimension if it reads\n"
    "contexts, episode_length and n_states if it plays episodes"
)


@dataclass(frozen=True)
class Request:
    """Request of a user; each field is an option of `bandana audit`.

    Attributes: as in `bandana.audit`, and
      algorithm: FILE.py:NAME.
      arms: for a function, or for something that builds an algorithm; None: two, or as the algorithm says.
      seconds: for all runs; a slow function gets fewer replays, and an algorithm that takes longer is stopped.
      pair: two data sets, or how files and literals are written; None: the claim's, or neighbors are searched for.
      users: with relation=user, whose each round is, how many consecutive rounds a user has, or how a file or a literal that
        says so is written.
      data: with relation=user, the table of rewards (n_rounds, n_arms) in which users are replaced; None: one is drawn.
    """

    algorithm: str
    claim: str
    relation: str | None = None
    trust: str | None = None
    replays: int = 20_000
    rounds: int = 32
    arms: int | None = None
    confidence: float = 0.95
    delta: float | None = None
    examples: int = 100
    seed: int = 0
    probes: tuple[int, ...] = ()
    low: float = 0.0
    high: float = 1.0
    seconds: float = 3600.0
    pair: Given | None = None
    users: object = None
    data: Sequence[Sequence[float]] | np.ndarray | None = None


def load(reference: str, arms: int | None = None) -> Loaded:
    """Loads a user's algorithm or function.

    An algorithm's text is searched for randomness of its own before a line of it runs; a function draws its own, from
    the seed that it is given.

    Raises:
      SpecError: no such file or name, a syntax error, an import that fails, randomness, or neither kind of thing.
    """
    path, name, source, tree = read(reference)
    if not _may_be_play(tree, name) and (drawn := conformance.draws(source)):
        lines = "\n".join(f"  {path}:{draw.line}: {draw.what}" for draw in drawn)
        raise SpecError(
            f"algorithm: {path.name} draws its own randomness, which no ledger accounts for:\n{lines}\n"
            "let all noise come from ledger.release (a plain function may draw, from its seed)"
        )
    with one_call():
        subject = named(path, name)
    if _is_play(subject):
        return Loaded(FUNCTION, subject, path, name, source)
    with blamed_on(path):
        algorithm = _built(subject, name, path, arms)
    if lacks := conformance.missing_members(algorithm):
        raise SpecError(
            f"algorithm: {path.name}:{name} is neither an algorithm nor a function (rewards, seed) -> actions; as an "
            "algorithm it lacks\n  " + "\n  ".join(lacks)
        )
    return Loaded(ALGORITHM, algorithm, path, name, source)


def _may_be_play(tree: ast.Module, name: str) -> bool:
    """True if the text defines a function of that name, a lambda, a bound function, or an object that is called."""
    for node in reversed(tree.body):
        match node:
            case ast.FunctionDef(name=defined, args=arguments) if defined == name:
                taken = [*arguments.posonlyargs, *arguments.args]
                return bool(taken) and taken[0].arg not in _ARM_NAMES
            case ast.Assign(targets=[ast.Name(id=defined)], value=value) if defined == name:
                return isinstance(value, ast.Lambda) or (isinstance(value, ast.Call) and _makes_play(tree, value.func))
    return False


def _makes_play(tree: ast.Module, made_by: ast.expr) -> bool:
    """True if a call of this gives a function: `functools.partial`, or a class of the file with `__call__`."""
    called = made_by.attr if isinstance(made_by, ast.Attribute) else getattr(made_by, "id", "")
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == called:
            return any(isinstance(part, ast.FunctionDef) and part.name == "__call__" for part in node.body)
    return called == "partial"


def _is_play(found: object) -> bool:
    """True if it is a plain function of rewards: callable, no algorithm, and nothing that builds one."""
    if not callable(found) or inspect.isclass(found) or not conformance.missing_members(found):
        return False
    try:
        first = next(iter(inspect.signature(found).parameters.values()), None)
    except (TypeError, ValueError):
        return True
    return first is not None and first.default is first.empty and first.name not in _ARM_NAMES


def _built(found: object, name: str, path: Path, arms: int | None) -> object:
    """The algorithm itself, or what its class or a function without arguments makes."""
    if not callable(found) or (not inspect.isclass(found) and not conformance.missing_members(found)):
        return found
    parameters = inspect.signature(found).parameters
    given = {key: 2 if arms is None else arms for key in _ARM_NAMES if key in parameters}
    if arms is None:
        given = {key: value for key, value in given.items() if parameters[key].default is inspect.Parameter.empty}
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = [key for key, p in parameters.items() if p.default is inspect.Parameter.empty and p.kind not in several]
    if needed := [key for key in required if key not in given]:
        raise SpecError(
            f"algorithm: {path.name}:{name} needs {', '.join(needed)}: name an algorithm that is built, or a function "
            "that builds one from n_actions alone; a black box is a function (rewards, seed) -> actions"
        )
    return found(**given)


def audit_own(request: Request, given: Loaded | None = None) -> tuple[Loaded, Outcome]:
    """Loads, checks and audits; what is `given` is not loaded from the request's file.

    Raises:
      SpecError: a mistake in the request or in the file.
    """
    try:
        claim, pair = read_claim(
            request.claim, request.pair, relation=request.relation, trust=request.trust, source=request.algorithm
        )
        delta = request.delta
        if delta is None:
            delta = claim.stated.delta if isinstance(claim.stated, ApproxDP) else _DEFAULT_DELTA
        effort = Effort(request.replays, request.confidence, small_delta("delta", delta), request.examples, request.seed)
        reward_range = Interval(request.low, request.high)
    except ClaimError as error:
        raise SpecError(f"--claim: {error}") from error
    except ValueError as error:
        raise SpecError(f"--{error}") from error
    if request.seed < 0:
        raise SpecError(f"--seed must be at least 0, got {request.seed}")
    _check_users(request, claim)
    making, loaded = Making(), given or load(request.algorithm, request.arms)
    with blamed_on(loaded.path):
        if pair is not None:
            if claim.relation is not Relation.GIVEN_PAIR:
                raise ClaimError(f"the pair is the relation: leave out {claim.relation.value!r}, or the pair")
            # What is given is an object of this process, which no file need hold.
            starts = set_aside(loaded.subject) if given else apart(loaded.subject, loaded.path, loaded.name)
            outcome = _audit_pair(loaded, request, claim, effort, reward_range, pair, starts)
        elif claim.relation is Relation.USER:
            outcome = _audit_users(loaded, request, claim, effort, reward_range)
        elif loaded.kind == FUNCTION:
            outcome = _audit_function(loaded, request, claim, effort, reward_range)
        else:
            outcome = _audit_algorithm(loaded, request, claim, effort)
    return loaded, replace(outcome, provenance=making.record(is_anonymous=is_anonymous()))


def _audit_algorithm(loaded: Loaded, request: Request, claim: Claim, effort: Effort) -> Outcome:
    algorithm = loaded.subject
    conformance.check_members(algorithm)
    n_actions = algorithm.n_actions
    if request.arms is not None and request.arms != n_actions:
        raise SpecError(f"--arms: {loaded.label} has {n_actions} actions, got {request.arms}")
    _check_rounds(request, n_actions + 1)
    table, table_words = _table(algorithm, request)
    try:
        conformance.check(algorithm, table, request.seed)
    except Exception as error:
        if type(table) is RewardTable and _reads_covariates(loaded.source):
            error.add_note(_AS_ARMS)
        raise
    white_box.check_scope(algorithm, table, claim, request.seed)
    probes = request.probes or white_box.find_probes(algorithm, table, request.seed)
    about = about_audits(table_words, probes, request.seed)
    trial = Trial(algorithm, claim, table, probes)
    return white_box.examine(trial, effort, loaded.words, about)


def _table(algorithm: Algorithm, request: Request) -> tuple[Table, str]:
    """The table that the algorithm is replayed on, and its description."""
    span, rounds, n_actions = algorithm.reward_range, request.rounds, algorithm.n_actions
    length, n_states, dimension = (
        getattr(algorithm, name, None) for name in ("episode_length", "n_states", "context_dimension")
    )
    coins = "fair coins at both ends of the range"
    if dimension is not None:
        contexts = sphere_table(rounds, n_actions, dimension, span, SeedSequence(request.seed))
        return contexts, f"{contexts}, contexts from the unit sphere of dimension {dimension}, {coins}"
    if length is None or n_states is None:
        arms = random_table(rounds, n_actions, span, request.seed)
        return arms, f"{arms}, {coins}"
    episodes = random_episodes(rounds, length, n_states, n_actions, span, request.seed)
    return episodes, f"{episodes} that lead anywhere, {coins}"


def _audit_pair(
    loaded: Loaded, request: Request, claim: Claim, effort: Effort, reward_range: Interval, pair: Given, starts: Aside
) -> Outcome:
    try:
        subject = prepared(loaded.subject, *pair, reward_range, effort.seed, one_call)
        outcome = audit_subject(subject, claim.stated, effort, request.seconds, starts=starts, beside=beside)
    finally:
        starts.end()
    return outcome.recorded(claim, loaded.words, about_audits(subject.words, (), request.seed))


def _check_users(request: Request, claim: Claim) -> None:
    if claim.relation is not Relation.USER:
        if request.users is not None or request.data is not None:
            raise SpecError(f"--{'users' if request.users is not None else 'data'}: only with relation=user")
    elif request.users is None:
        raise SpecError(
            "--users: relation=user needs whose each round is: one number or name for each round, in a file or a list; "
            "or how many consecutive rounds a user has, such as --users 4"
        )
    elif request.probes:
        raise SpecError("--probe: not with relation=user, for which all rewards of each user are replaced")


def _audit_users(loaded: Loaded, request: Request, claim: Claim, effort: Effort, reward_range: Interval) -> Outcome:
    if getattr(loaded.subject, "episode_length", None) is not None:
        raise ClaimError("it plays episodes, and no search replays all episodes of one user: claim relation=trajectory")
    if getattr(loaded.subject, "context_dimension", None) is not None:
        raise ClaimError("it reads contexts, and no search replays all records of one user: claim relation=record or reward")
    if loaded.kind == FUNCTION:
        black_box.check_trust(claim)
        arms = request.arms or 2
    else:
        arms, reward_range = loaded.subject.n_actions, loaded.subject.reward_range
    _check_rounds(request, arms + 2)
    users = read_data("--users", request.users) if isinstance(request.users, str) else request.users
    shape = request.rounds, arms
    users, bases = users_of(users, shape[0]), base_tables(shape, reward_range, effort.seed, request.data)
    first = RewardTable(bases[0][1], reward_range)
    against = on_tables(loaded.subject, (first, first), reward_range, effort.seed, one_call)
    outside = loaded.kind != FUNCTION or accepts_outside(
        adapted(loaded.subject, shape, reward_range, one_call), shape, reward_range
    )
    tried = replaced_users(against, bases, users, reward_range, effort.seed, goes_outside=outside)
    subject, search = most_telling(tried, effort.replays, effort.seed, request.seconds)
    outcome = audit_subject(subject, claim.stated, effort, request.seconds, search)
    about = about_audits(f"{shape[0]} rounds x {shape[1]} arms; {search}", (), request.seed)
    return outcome.recorded(claim, loaded.words, about)


def _audit_function(loaded: Loaded, request: Request, claim: Claim, effort: Effort, reward_range: Interval) -> Outcome:
    arms = request.arms or 2
    if arms < 2:
        raise SpecError(f"--arms must be at least 2, got {arms}")
    _check_rounds(request, arms + 2)
    if claim.relation is Relation.ADD_REMOVE:
        raise ClaimError(
            f"a function plays rounds that everybody can count, and no search replays {claim.relation.value!r}: claim "
            "relation=reward, or name two tables with pair=(A, B)"
        )
    black_box.check_trust(claim)
    if max(request.probes, default=0) > request.rounds - 2:
        raise SpecError(f"--probe must lie before the last of {request.rounds} rounds for a function, got {request.probes}")
    shape = (request.rounds, arms)
    play = adapted(loaded.subject, shape, reward_range, one_call)
    check(play, even_table(request.rounds, arms, reward_range), request.seed)
    menu = Menu.of(reward_range, constants(loaded.source), accepts_outside(play, shape, reward_range))
    effort = replace(effort, replays=affordable(play, shape, reward_range, effort.replays, request.seconds))
    faults = beside(lambda: black_box.planted_and_searched(play, menu, shape, claim, effort))
    screened = screened_by(play, menu, shape, claim, effort)
    records = request.probes or tuple(
        sorted({suspect.record for suspect in screened.suspects} | {0, min(arms, shape[0] - 2)})
    )
    tried = black_box.tried_pairs(shape, reward_range, records, request.seed, len(menu) > len(menu.within))
    pilot = max(256, min(2048, effort.replays // len(tried)))
    pairs = black_box.find_pairs(play, tried, request.seed, pilot, n_pairs=1)
    table_words = (
        f"{request.rounds} rounds x {arms} arms; {screened.n_runs} runs on drawn rewards ({menu.words()}) screened for "
        f"every record, then the best {len(pairs)} of {len(tried)} pairs"
    )
    about = about_audits(table_words, tuple(pair.record for pair in pairs), request.seed)
    outcome = black_box.examine(play, claim, pairs, effort, loaded.words, about, screened, menu, loaded.path, faults)
    return _with_coupling(outcome, compare_plays(play, menu, shape, request.seed))


def _with_coupling(outcome: Outcome, coupling: Coupling) -> Outcome:
    """The outcome with what seeds of generators showed: a caveat, and a view where any were seen."""
    assert outcome.coverage is not None
    views = (*outcome.coverage.views, "seeds of generators") if coupling.n_seen else outcome.coverage.views
    views = (*views, INDEPENDENT) if coupling.is_same else views
    caveats = (coupling.finding,) if coupling.finding else ()
    return replace(outcome, caveats=(*outcome.caveats, *caveats), coverage=replace(outcome.coverage, views=views))


def _check_rounds(request: Request, least: int) -> None:
    if request.rounds < least:
        raise SpecError(f"--rounds must be at least {least} here, got {request.rounds}")
    for probe in request.probes:
        if not 0 <= probe < request.rounds:
            raise SpecError(f"--probe must lie in [0, {request.rounds}), the rounds of a replay, got {probe}")


def _reads_covariates(source: str) -> bool:
    """True if a text reads contexts or states anywhere; False of what is no Python."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return False
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    return bool(_COVARIATES & (named | {node.attr for node in nodes if isinstance(node, ast.Attribute)}))
