"""The page of a live policy: everything on it follows from releases."""

from __future__ import annotations

import math

from jinja2 import Environment

from bandana.flows.annexes.live.estimates import ArmMean, arm_means
from bandana.flows.annexes.live.policy import Policy

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="10"><title>{{ router.algorithm }} - Bandana live</title><style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .3rem .8rem .3rem 0; }
tr + tr { border-top: 1px solid #ddd; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { position: relative; height: .8rem; background: #eee; min-width: 7rem; } .bar * { position: absolute; height: 100%; }
.bar span { background: #8fb3d9; } .bar b { width: 3px; margin-left: -1px; background: #123f70; } p { color: #444; }
@media (max-width: 40rem) { .bar { display: none; } }
</style></head><body>
<h1>{{ router.algorithm }}</h1>
<table>
<tr><th>claimed</th><td>{{ privacy.claimed }}</td></tr>
<tr><th>accounted</th><td>{{ privacy.accounted }}, after {{ privacy.n_releases }} releases</td></tr>
{% if privacy.left is not none %}<tr><th>left in book {{ router.book }}</th>
<td>one run of at most epsilon {{ "%.3g"|format(privacy.left) }}</td></tr>{% endif %}
<tr><th>noise</th><td>{{ privacy.noise }}</td></tr>
<tr><th>persons asked for</th><td>{{ counts.asked }}, of whom {{ counts.entered }} entered</td></tr>
{% if regret is not none %}<tr><th>regret, by released means</th><td>{{ "%.4g"|format(regret) }}</td></tr>{% endif %}
</table>
{% if means %}
<h2>Arms</h2>
<table><tr><th>arm</th><th>rewards</th><th>mean</th><th>95 % interval</th><th></th></tr>
{% for mean in means %}<tr><td>{{ mean.arm }}</td><td class="number">{{ mean.n_rewards }}</td>
{% if mean.n_rewards %}<td class="number">{{ "%.3f"|format(mean.mean) }}</td>
<td class="number">{{ "%.3f"|format(mean.low) }} to {{ "%.3f"|format(mean.high) }}</td>
<td><div class="bar"><span style="left:{{ place(mean.low) }}%;width:{{ place(mean.high) - place(mean.low) }}%"></span>
<b style="left:{{ place(mean.mean) }}%"></b></div></td>
{% else %}<td colspan="3">nothing released yet</td>{% endif %}</tr>
{% endfor %}</table>
<p>Each arm's intervals hold at all times together with probability 95 %. A person who did not answer counts as
{{ "%g"|format(router.missing_reward) }}.</p>
{% else %}<p>This policy decides from contexts: it releases no means of arms.</p>{% endif %}
<p>Everything here follows from noisy releases and from the times of asks. Regret by released means adds up, over the rewards
that were released, how far their arm's released mean is below the largest one.</p>
</body></html>
"""


def html(policy: Policy) -> str:
    """The page, in one file; it loads nothing."""
    router = policy.router
    low, high = router.reward_range
    means = [] if router.is_contextual else arm_means(policy)

    def place(value: float) -> float:
        return round(100 * min(max((value - low) / (high - low), 0.0), 1.0), 2)

    template = Environment(autoescape=True).from_string(_PAGE)
    facts = {"router": router, "privacy": policy.privacy(), "counts": policy.counts(), "means": means}
    return template.render(**facts, regret=regret_by_means(means), place=place)


def regret_by_means(means: list[ArmMean]) -> float | None:
    """Released rewards times the distance of their arm's released mean from the largest; None before all arms have one."""
    if not means or any(math.isnan(mean.mean) for mean in means):
        return None
    best = max(mean.mean for mean in means)
    return math.fsum(mean.n_rewards * (best - mean.mean) for mean in means)
