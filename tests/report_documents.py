"""Report documents to render: each verdict, several environments, withheld regret, comparisons, hostile words."""

import math
import re
from html.parser import HTMLParser
from statistics import NormalDist

from bandana.audits.reporting.document import REGRET

HOSTILE = "<script>alert(1)</script> #panic(\"x\") $x^2$ 'q' \\ {{ 7*7 }} {% raw %} *b* _i_ @ref `r` </svg> -->"


DELTA = 1e-5
EPSILON = f"epsilon at delta {DELTA:g}"
PAIRS = (
    "record 0: every reward 0 becomes 1",
    "record 2: every reward 0 becomes 1",
    "record 2: every reward 0 becomes 5, outside [0, 1]",
    "record 2: reward 1 becomes 0 and the others 0 become 1; the rows before it hold the largest rewards of arm 1",
)


def three(claimed, accounted, measured):
    return {"claimed": claimed, "accounted": accounted, "measured": measured}


def bounds(budget, claims, failure=0.05, n=100_000, pairs=PAIRS):
    """All bounds of one budget; `claims` is (view, attack, quantity, method, claimed, lower) for each look."""
    return [
        {
            "budget": budget,
            "view": view,
            "attack": attack,
            "neighbor": pair,
            "quantity": quantity,
            "method": method,
            "lower": lower * (1 - 0.01 * ((index + len(method)) % len(pairs))),
            "claimed": claimed,
            "level": failure / len(claims) / len(pairs),
            "n_data": n // 2 if view == "actions" else n,
            "n_neighbor": n // 2 if view == "actions" else n,
        }
        for view, attack, quantity, method, claimed, lower in claims
        for index, pair in enumerate(pairs)
    ]


def looks(mu, epsilon, share=0.99):
    """The looks at a (2, mu^2)-RDP claim."""
    ratio, learned = "exact likelihood ratio", "boosted stumps on counts of arms"
    return (
        ("transcript", ratio, "mu", "mu-curve", mu, share * mu),
        ("transcript", ratio, EPSILON, "epsilon-coins", epsilon, 0.6 * share * epsilon),
        ("transcript", ratio, "divergence of order 2", "renyi", mu**2, 0.9 * share * mu**2),
        ("actions", learned, "mu", "mu-curve", mu, 0.31 * mu),
        ("actions", learned, EPSILON, "epsilon-coins", epsilon, 0.0),
    )


def tradeoff(claimed, lower):
    normal = NormalDist()
    inner = [i / 50 for i in range(1, 50)]

    def curve(mu):
        return [1.0, *(normal.cdf(normal.inv_cdf(1 - p) - mu) for p in inner), 0.0]

    return {
        "fpr": [0.0, *inner, 1.0],
        "claimed": curve(claimed),
        "measured": curve(1.005 * lower),
        "lower_bound": curve(lower),
        "mu_lower": lower,
    }


def control(name="noise-halved", fault="half of the noise that is paid for is drawn", measured=1.97, caught=True, **other):
    checks = other.get("expected", ["sampling", "noise"])
    return {
        "name": name,
        "fault": fault,
        "expected": checks,
        "caught_by": checks if caught else checks[:-1],
        "measured": measured,
        "limit": 1.0,
        "caught": caught,
    }


def power(smallest=1.0213, quantity="mu"):
    """Audits that catch a share that grows evenly, up to all at twice the excess of the smallest factor."""
    factors = [1 + (smallest - 1) * step / 5 for step in range(11)]
    caught = [min(1.0, 0.95 * step / 5) for step in range(11)]
    return {"quantity": quantity, "factors": factors, "caught": caught, "text": "From 40 simulated audits."}


def audit(label="tight eps=1", mu=1.0, verdict="PASS"):
    epsilon = 4.37721 * mu
    numbers = three(mu, mu, 0.99 * mu)
    return {
        "label": label,
        "algorithm": "adar-ucb",
        "calibration": "tight",
        "privacy_model": "central",
        "parameters": {"alpha": 2.0, "epsilon": mu},
        "unit": "one reward (one round)",
        "relation": "replace one reward",
        "view_of_adversary": "every released value and every action",
        "claim": {
            "statement": f"all actions are (2, {mu**2:g})-RDP",
            "theorem": "Theorem 4",
            "source": "A source",
            "mu": mu,
        },
        "delta": DELTA,
        "main": {"quantity": "mu", **numbers},
        "mu": numbers,
        "epsilon": three(epsilon, epsilon, 0.987 * epsilon),
        "measured_epsilon": {"unconditional": 0.594 * epsilon, "gaussian": 0.987 * epsilon},
        "accountant": {
            "method": "exact Gaussian DP",
            "formula": "mu = sqrt(sum of mu_i^2)",
            "events": [{"event": "Gaussian", "noise_multiplier": 1 / mu, "mu": mu, "epsilon": None, "count": 1}],
            "noise_source": "reproducible",
            "text": "One charge.",
        },
        "measurement": {
            "confidence": 0.95,
            "replays_per_side": 100000,
            "seed": 7,
            "table": "the first 64 rows of the trial",
            "bounds": bounds("claimed", looks(mu, epsilon)),
            "smallest_factor": 1.0213,
            "smallest_factor_at_claim": 1.0213,
            "test_budget": None,
            "text": "Corrected.",
        },
        "deterministic": {"examples": 200, "counterexample": None, "noise_finding": None},
        "controls": [
            control(),
            control("noise-redrawn", "the noise is drawn anew at each pull", 2.2, expected=["sampling", "deterministic"]),
        ],
        "power": power(),
        "tradeoff": tradeoff(mu, 0.99 * mu),
        "rounds": {"replayed": 64, "walked": 1000},
        "coverage": ["covered: every record of 64 rounds"],
        "verdict": verdict,
        "reasons": ["claimed >= accounted >= measured", "all 2 planted faults were caught at the same effort"],
        "provenance": provenance(),
    }


def at_test_budget(label="tight eps=0.01"):
    """A PASS at a budget so small that the faults were planted at another one."""
    found = audit(label, mu=0.1)
    numbers = three(1.0, 1.0, 0.9897)
    claim = "1-GDP (replace one reward)"
    found["epsilon"] = three(0.3116, 0.3116, 0.2783)
    found["measured_epsilon"] = {"unconditional": 0.168, "gaussian": 0.2783}
    found["measurement"] |= {
        "bounds": bounds("claimed", looks(0.1, 0.3116, 0.9), 0.025) + bounds("test", looks(1.0, 4.37721), 0.025),
        "smallest_factor": 1.0234,
        "smallest_factor_at_claim": 1.312,
        "test_budget": {"claim": claim, "main": {"quantity": "mu", **numbers}},
    }
    found["reasons"][-1] += f", at the test budget {claim}"
    return found


def releases(moves, span=1):
    return [
        {
            "release": index,
            "rounds": index + 1,
            "mechanism": "Gaussian",
            "norm": "L2",
            "start": index,
            "stop": index + span,
            "carried": None,
            "reads_record": index == 0,
            "moved": moved,
            "allowed": allowed,
            "times": moved / allowed if allowed else None if moved else 0.0,
            "cost": "1-GDP",
            "is_offending": moved > allowed,
        }
        for index, (moved, allowed) in enumerate(moves)
    ]


def counterexample(**other):
    """A reward outside the declared range is not clipped."""
    reason = "release 0 moved by 5, 5 times its sensitivity 1"
    data = [
        {
            "round": place,
            "arm": arm,
            "neighbor_arm": arm,
            "states": None,
            "actions": None,
            "neighbor_states": None,
            "neighbor_actions": None,
            "rewards": [0.0, 0.25],
            "neighbor_rewards": [0.0, 0.25] if place else [5.0, 5.0],
        }
        for place, arm in enumerate((0, 1, 1, 0))
    ]
    return {
        "summary": f"4 rounds; record 0 changes from [0, 0.25] to [5, 5]: {reason}",
        "lines": ["record 0 of 4 rounds changes", reason],
        "kind": "sensitivity",
        "reason": reason,
        "release": 0,
        "replicate": 0,
        "n_replicates": 32,
        "case": {
            "n_rounds": 4,
            "record": 0,
            "before": [0.0, 0.25],
            "after": [5.0, 5.0],
            "seed": 3,
            "wide": None,
            "episode": None,
            "covariates": None,
            "replaced_covariates": None,
            "rewards": [{"start": 0, "stop": 4, "rewards": [0.0, 0.25]}],
            "others": [],
        },
        "data": data,
        "n_releases": 4,
        "releases": releases([(5.0, 1.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)]),
        "difference": None,
        "total": None,
    } | other


def failed(label="own_bandit.py:bandit"):
    """A FAIL with a counterexample, noise that is not what is declared, and a bound above the claim."""
    found = audit(label, verdict="FAIL")
    found["main"] = {"quantity": "mu", **three(1.0, 1.0, 4.612)}
    found["mu"], found["epsilon"]["measured"] = three(1.0, 1.0, 4.612), 28.31
    found["measured_epsilon"]["gaussian"] = 28.31
    found["measurement"]["bounds"] = bounds("claimed", looks(1.0, 4.37721, 4.612))
    found["tradeoff"] = tradeoff(1.0, 4.612)
    noise_finding = "release 0: the noise's deviation is 0.499 times the declared one"
    found["deterministic"] |= {"counterexample": counterexample(), "noise_finding": noise_finding}
    found["reasons"] = [
        "measured exceeds claimed: mu >= 4.612 at 0.95 confidence, the claim allows 1",
        "measured exceeds accounted: mu >= 4.612, the ledger composes to 1",
        f"counterexample: {found['deterministic']['counterexample']['summary']}",
        f"the noise is not what is declared: {noise_finding}",
    ]
    return found


def undecided(label="tight eps=1e-4"):
    """An INCONCLUSIVE audit: no factor would have been seen, and a planted fault was not."""
    found = audit(label, mu=0.01, verdict="INCONCLUSIVE")
    numbers = three(0.01, 0.01, 0.0)
    found["main"], found["mu"], found["epsilon"] = {"quantity": "mu", **numbers}, numbers, three(0.02244, 0.02244, 0.0)
    found["measured_epsilon"] = {"unconditional": 0.0, "gaussian": 0.0}
    found["measurement"] |= {
        "replays_per_side": 2000,
        "bounds": bounds("claimed", looks(0.01, 0.02244, 0.0), n=2000),
        "smallest_factor": None,
        "smallest_factor_at_claim": None,
    }
    found["power"] = None
    found["controls"] = [control(measured=0.0, caught=False, expected=["noise", "sampling"])]
    found["controls"][0]["limit"] = 0.01
    found["tradeoff"] = tradeoff(0.01, 0.0)
    found["reasons"] = [
        "2000 replays are too few: at 0.95 confidence not even a test without errors could refute mu = 0.01; that needs "
        "about 4096000",
        "the audit missed the planted fault noise-halved: 0 was measured, and more than 0.01 must be; try more replays",
    ]
    return found


def black_box(label="their_bandit.py:play"):
    """A plain function: no ledger, and only actions are seen."""
    found = audit(label)
    claims = (
        ("actions", "logistic regression on the first six actions", "divergence of order 2", "renyi", 1.0, 0.4127),
        ("actions", "counts of arms", EPSILON, "epsilon-coins", 4.37721, 0.391),
    )
    fault = "the action after the record repeats the record's reward (no privacy)"
    found |= {
        "calibration": None,
        "parameters": {},
        "view_of_adversary": "the actions of all other users",
        "main": {"quantity": "divergence of order 2", **three(1.0, None, 0.4127)},
        "mu": three(None, None, None),
        "epsilon": three(4.37721, None, 0.391),
        "measured_epsilon": {"unconditional": 0.391, "gaussian": None},
        "controls": [control("reward-echoed", fault, 3.41, expected=["sampling"])],
        "power": power(1.62, "divergence of order 2"),
        "tradeoff": None,
        "rounds": None,
        "coverage": ["covered: 2 pairs of data sets, those of the bounds below"],
        "verdict": "NOT REFUTED",
        "reasons": ["claimed >= measured, in the actions alone; a function shows no ledger to account"],
    }
    found["claim"] |= {"theorem": "as stated", "source": "the user"}
    found["accountant"] |= {"events": [], "noise_source": ""}
    found["measurement"] |= {
        "bounds": bounds("claimed", claims, pairs=PAIRS[:2]),
        "smallest_factor": 1.62,
        "smallest_factor_at_claim": 1.62,
    }
    found["deterministic"]["examples"] = 0
    return found


def sample():
    """A document as a user gets it: each verdict, a test budget, a counterexample, a plain function."""
    return make(audits=[audit(), at_test_budget(), failed(), undecided(), black_box()])


def cell(label, epsilon, final, environment="bernoulli"):
    mean = [final / 100, final / 10, final]
    mu = None if epsilon is None else math.sqrt(epsilon)
    return {
        "label": label,
        "environment": environment,
        "algorithm": "ucb" if epsilon is None else "adar-ucb",
        "calibration": None if epsilon is None else "tight",
        "privacy_model": "none" if epsilon is None else "central",
        "guarantee": None if epsilon is None else "renyi",
        "epsilon": epsilon,
        "promise": None if epsilon is None else promise(4.37721 * mu, statement=f"all actions are (2, {epsilon:g})-RDP"),
        "noise": None if epsilon is None else "reproducible (NumPy SFC64)",
        "mu": mu,
        "of_user": None,
        "mu_claimed": mu,
        "mu_spent": None if mu is None else [0.0, 0.8 * mu, mu],
        "replications": 20,
        "mean": mean,
        "low": [0.9 * m for m in mean],
        "high": [1.1 * m for m in mean],
        "final_mean": final,
        "final_low": 0.9 * final,
        "final_high": 1.1 * final,
        "values": None,
        "decision": None,
        "final_quantiles": [0.8 * final, final, 1.2 * final],
        "caution": None,
        "bound": None,
        "bound_text": None,
        "lower_bound": None,
        "lower_bound_text": None,
        "role": "algorithm",
        "twin_of": None,
    }


def promise(epsilon=4.37721, **other):
    return {
        "statement": "all actions are (2, 1)-RDP",
        "unit": "one reward (one round)",
        "relation": "replace one reward",
        "epsilon": epsilon,
        "delta": DELTA,
        "is_pure": False,
    } | other


def deployment(**other):
    """What an operator declares, everything of it."""
    return {
        "curator": "Ministry of Reminders",
        "purpose": "Choose the reminder that brings most people",
        "data_source": "Answers to letters and calls",
        "license": "Consent",
        "people": 2000,
        "region": "Nowhere",
        "sector": "Healthcare",
        "product": "Machine learning model",
        "release_type": "one release",
        "unprotected": ["the number of rounds"],
        "approver": "A data protection officer",
        "approved": "2026-11-01",
        "retention": "Five years, the study team",
        "expires": "2027-11-01",
    } | other


def book(**other):
    """What a report shows of a budget book."""
    return {
        "environment": "people.csv",
        "name": "trial",
        "head": "ab" * 32,
        "entries": 9,
        "earlier": 0,
        "unprotected": 0,
        "delta": 1e-6,
        "budget": 3.0,
        "spent": 2.5,
        "left": 1.7,
        "suite_spent": 1.0,
        "most_costly_cell": 0.8,
        "problem": None,
    } | other


def bounded(found):
    """The same cell with a bound that is ten times its regret."""
    return found | {"bound": [10.0 * m for m in found["mean"]], "bound_text": "Somebody, Theorem 5: 10 log t, beta = 3.1"}


def environment(label="bernoulli"):
    return {
        "label": label,
        "name": "bernoulli",
        "description": "Two arms.",
        "estimator": "Drawn.",
        "data": "simulated",
        "horizon": 1000,
        "unit": "rounds",
        "actions": ["left", "right"],
        "means": [0.25, 0.75],
        "visits": None,
        "not_the_data_of": [],
    }


def whole():
    """An experiment with everything: two environments, one withheld, several levels, links and regressions."""
    document = sample()
    private = environment("people.csv") | {"means": [], "data": "private"}
    levels = [(f"tight eps={epsilon:g} on bernoulli", epsilon, 200 / epsilon**0.3) for epsilon in (0.1, 1.0, 10.0)]
    hidden = cell("tight eps=1 on people.csv", 1.0, 1.0, "people.csv") | dict.fromkeys(REGRET)
    cells = [cell("ucb on bernoulli", None, 90.0), *(bounded(cell(*level)) for level in levels), hidden]
    rows = [
        {"label": "ucb", "quantity": "final regret", "before": 80.0, "now": 90.0, "is_worse": True, "text": "Above."},
        {"label": "tight eps=1", "quantity": "verdict", "before": "PASS", "now": "PASS", "is_worse": False, "text": "Same."},
    ]
    document["environments"].append(private)
    document["benchmark"] |= {"cells": cells, "withheld": "Regret on people.csv is withheld: the data are private."}
    document["regressions"] = {"baseline": "baseline.json", "rows": rows}
    document["related"] = [
        {"label": audit["label"], "path": f"audits/a{i}.html"} for i, audit in enumerate(document["audits"])
    ]
    return document


def later():
    """The same experiment after a change: other numbers, one audit gone, one new, one worse."""
    document = whole()
    first, second = document["audits"][:2]
    first |= {"verdict": "INCONCLUSIVE"}
    first["controls"][0] |= {"caught": False, "caught_by": []}
    first["parameters"] = {"alpha": 2.0, "epsilon": 1.0, "beta": 3.1}
    document["audits"] = [first, second | {"label": "a new one"}, *document["audits"][2:]]
    document["related"] = []
    cells = document["benchmark"]["cells"]
    cells[0] = cell("ucb on bernoulli", None, 60.0)
    cells[1] = cell(cells[1]["label"], 0.1, 401.0)
    document["provenance"]["makers"][0]["versions"] = {"bandana": "0.2.0"}
    document["spec"] = "name: demo\nseed: 2\n"
    document["evidence"] = {
        "sha256": "ef" * 32,
        "numbers": "fe" * 32,
        "files": [{"path": "a/b.npz", "sha256": "01" * 32, "numbers": "10" * 32}],
    }
    document["created"] = "2026-11-22T02:00:00+00:00"
    return document


def provenance(**other):
    """How a result came to be, as it is stored."""
    return {
        "began": "2026-11-21T01:58:00.000+00:00",
        "ended": "2026-11-21T02:00:00.000+00:00",
        "versions": {"bandana": "0.1.0", "numpy": "2.4.6", "python": "3.11.7"},
        "system": "Linux-6.1-x86_64-with-glibc2.36",
        "processor": "AMD EPYC",
        "target": "znver4",
        "features": ["X86_V2", "X86_V3"],
        "blas": [{"library": "openblas 0.3.31", "kernel": "SkylakeX", "threads": 1}],
        "sources": "0f" * 32,
        "commit": "4b" * 20,
        "is_clean": True,
        "user": "somebody",
        "host": "somewhere",
    } | other


def make(audits=None):
    audits = [audit(), audit("tight eps=10", mu=3.0)] if audits is None else audits
    cells = [cell("ucb", None, 90.0), cell("private 1", 1.0, 200.123456)]
    made = {"blocks": 4, "audits": len(audits), **provenance()}
    return {
        "schema": "bandana/report/12",
        "kind": "experiment",
        "title": "A title",
        "description": "Reminders, on two arms",
        "suite": "demo",
        "created": "2026-11-21T02:00:00+00:00",
        "deployment": None,
        "people": {"count": 1000, "source": "the rounds of one run"},
        "books": [],
        "environments": [environment()],
        "audits": audits,
        "benchmark": {
            "grid": [1, 30, 1000],
            "replications": 20,
            "band": "95 % interval",
            "withheld": None,
            "cells": cells,
            "comparisons": [],
        },
        "regressions": None,
        "related": [],
        "provenance": {
            "began": made["began"],
            "ended": made["ended"],
            "makers": [made],
            "not_recorded": {"blocks": 0, "audits": 0},
        },
        "seeds": {"root": 20240, "tuple": [1, 2]},
        "spec": "name: demo\n",
        "commands": ["bandana run demo.yaml"],
        "evidence": {
            "sha256": "ab" * 32,
            "numbers": "ba" * 32,
            "files": [{"path": "a/b.npz", "sha256": "cd" * 32, "numbers": "dc" * 32}],
        },
    }


def hostile(value):
    if isinstance(value, dict):
        fixed = {
            "schema",
            "created",
            "began",
            "ended",
            "numbers",
            "verdict",
            "sha256",
            "budget",
            "view",
            "quantity",
            "expected",
            "caught_by",
            "kind",
            "unit",
            "role",
            "data",
            "release_type",
            "approved",
            "expires",
        }
        return {k: v if k in fixed else hostile(v) for k, v in value.items()}
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return f"{HOSTILE} {value}" if isinstance(value, str) else value


class Elements(HTMLParser):
    """Every element with its attributes, and the elements left open."""

    def __init__(self, text):
        super().__init__()
        self.found, self.stack = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "hr", "img", "link", "wbr"}:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def words_of(html):
    """The page's words without its tags and figures."""
    return " ".join(re.sub(r"<[^>]*>", "", re.sub(r"<svg.*?</svg>", "", html, flags=re.DOTALL)).split())
