"""The comparison page of a suite in MLflow, as plain data: which charts, in which order, over which runs.

MLflow's pages keep a saved view in an experiment tag; writing that tag from code gives every suite the same curated page.
The format is MLflow's own and undocumented (read from version 3.17.2): a test decodes what is written here.
"""

from __future__ import annotations

import base64
import colorsys
import json
import math
import uuid
import zlib

from bandana.flows.tracking.metrics import AUDIT_METRICS, METRICS

VIEW_KEY = "bandana"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW_KEY}"
VIEW_NAME = "Regret and privacy"
SEARCH_FILTER = "tags.role = 'cell' and tags.current = 'true'"

REGRET, PRIVACY, TOGETHER, DETAILS = "Regret", "Privacy", "Parameters and results", "Details"
FINAL_REGRET, MEAN_REGRET, MU_SPENT = "regret/final", "regret/mean", "privacy/mu_spent"
CLAIMED, ACCOUNTED = "privacy/epsilon_claimed", "privacy/epsilon_accounted"
MEASURED = "audit/epsilon_measured"

_DETAIL_BARS = tuple(
    name
    for name in (*(name for metric in METRICS for name in metric.names), *AUDIT_METRICS)
    if name not in (FINAL_REGRET, CLAIMED, ACCOUNTED, MEASURED)
)
_DETAIL_LINES = ("regret/low", "regret/high")
_PREFIX = "deflate;"
_NAMESPACE = uuid.UUID("4f6a2d0e-3c53-5d0b-9d1f-0a7b3c1d2e5f")
# Hues far apart from one another, in the order in which families of runs appear; degrees.
_HUES = (212, 24, 130, 285, 350, 48, 178, 320, 85, 250)
_GRAYS = (48, 105, 160)


def comparison_state() -> dict[str, object]:
    """The page: only cells, each as its newest run has it, the lowest regret first; charts in sections, details folded."""
    sections = {name: _identifier("section", name) for name in (REGRET, PRIVACY, TOGETHER, DETAILS)}
    params = ("environment", "role", "algorithm", "calibration", "privacy_model", "promise", "horizon", "replications")
    metrics = (FINAL_REGRET, CLAIMED, ACCOUNTED, MEASURED, "audit/controls_caught")
    return {
        "searchFilter": SEARCH_FILTER,
        "orderByKey": f"metrics.`{FINAL_REGRET}`",
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "datasetsFilter": [],
        "selectedColumns": [
            *(f"params.`{name}`" for name in params),
            *(f"metrics.`{name}`" for name in metrics),
            "tags.`verdict`",
        ],
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "runsVisibilityMap": {},
        "runsHiddenMode": "SHOW_ALL",
        "viewMaximized": False,
        "runListHidden": False,
        # MLflow would otherwise sort the sections by name.
        "isAccordionReordered": True,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "autoRefreshEnabled": True,
        "globalLineChartConfig": {"xAxisKey": "step", "lineSmoothness": 0, "selectedXAxisMetricKey": ""},
        "compareRunCharts": _charts(*sections.values()),
        "compareRunSections": [
            {
                "uuid": key,
                "name": name,
                "display": name != DETAILS,
                "isReordered": False,
                "deleted": False,
                "columns": 1 if name == TOGETHER else 2,  # of three, names are cut at 1280 pixels
            }
            for name, key in sections.items()
        ],
    }


def _charts(regret: str, privacy: str, together: str, details: str) -> list[dict[str, object]]:
    """All charts, each in the section of the given identifier."""
    return [
        # On a linear axis reference rows, which lose much, would press all others flat.
        _line(MEAN_REGRET, regret, "Regret over rounds (log-log)", log_y=True),
        _bar([FINAL_REGRET], regret, "Final regret"),
        # To be read in this order: claimed >= accounted >= measured.
        _bar([CLAIMED], privacy, "Epsilon claimed by the source"),
        _bar([ACCOUNTED], privacy, "Epsilon accounted from the ledger"),
        _bar([MEASURED], privacy, "Epsilon measured by the audit (lower bound)"),
        {
            **_card("SCATTER", privacy, "Privacy against regret: epsilon accounted, final regret"),
            "xaxis": {"key": ACCOUNTED, "type": "METRIC"},
            "yaxis": {"key": FINAL_REGRET, "type": "METRIC"},
        },
        _line(MU_SPENT, privacy, "Privacy spent over rounds: mu (log rounds)"),
        # Alone in its row: the names of its axes need the whole width. MLflow hides it while a metric of it is missing
        # everywhere, so none of the audit's is among them.
        {
            **_card("PARALLEL", together, "Algorithm, calibration, promise, regret"),
            "selectedParams": ["algorithm", "calibration", "promise"],
            "selectedMetrics": [ACCOUNTED, FINAL_REGRET],
            "showAllRuns": True,
        },
        # MLflow adds a section for every metric that has no chart: these have theirs, out of the way.
        *(_bar([metric], details, metric) for metric in _DETAIL_BARS),
        *(_line(metric, details, metric) for metric in _DETAIL_LINES),
    ]


_SEARCH_FIELDS = (
    "searchFilter", "orderByKey", "orderByAsc", "startTime", "lifecycleFilter", "modelVersionFilter", "datasetsFilter",
)  # fmt: skip
"""Fields that MLflow keeps in the address of an experiment's page, and not in the browser's storage."""


def search_fields(state: dict[str, object]) -> dict[str, str]:
    """The search fields of a view as MLflow writes them into the page's address once it has loaded the view."""
    texts = {name: value for name in _SEARCH_FIELDS if isinstance(value := state[name], str)}
    listed = base64.b64encode(json.dumps(state["datasetsFilter"], separators=(",", ":")).encode()).decode("ascii")
    return {**texts, "orderByAsc": str(state["orderByAsc"]).lower(), "datasetsFilter": listed}


def encode_view(state: dict[str, object], created_ms: int) -> str:
    """The tag's value for a state of `comparison_state`; equal states give equal values.

    The view's creation is given in milliseconds; the experiment's own never changes.
    """
    packed = zlib.compress(json.dumps(state, separators=(",", ":"), allow_nan=False).encode(), level=9)
    text = _PREFIX + base64.b64encode(packed).decode("ascii")
    return json.dumps({"name": VIEW_NAME, "createdAt": created_ms, "updatedAt": created_ms, "state": text})


def compare_page(experiment_id: str) -> str:
    """Where MLflow's pages show the view of an experiment: what follows the address of the server."""
    query = f"workflowType=machine_learning&compareRunsMode=CHART&viewStateShareKey={VIEW_KEY}"
    return f"#/experiments/{experiment_id}/runs?{query}"


def run_color(family: int, epsilon: float | None = None, role: str = "algorithm") -> str:
    """A run's color '#rrggbb' on every chart: one hue a family (algorithm and calibration), lighter the more private.

    A cell without its noise has a pale version of its cell's color; reference rows are gray.

    Args:
      family: its place in the order of appearance, among reference rows or among all others.
      epsilon: None for a run that is not private.
      role: algorithm, twin or reference.
    """
    if role == "reference":
        gray = _GRAYS[family % len(_GRAYS)]
        return f"#{gray:02x}{gray:02x}{gray:02x}"
    hue = _HUES[family % len(_HUES)] / 360
    if epsilon is None or not math.isfinite(epsilon) or epsilon <= 0:
        position = 0.5
    else:
        position = min(max((math.log10(epsilon) + 1.5) / 3, 0.0), 1.0)  # 0.03 lightest, 30 darkest
    red, green, blue = colorsys.hls_to_rgb(hue, 0.76 - 0.46 * position, 0.2 if role == "twin" else 0.6)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def _identifier(*words: str) -> str:
    # The same for every suite and at every call: a rewritten view is byte for byte the old one.
    return str(uuid.uuid5(_NAMESPACE, "/".join(words)))


def _card(kind: str, section: str, title: str) -> dict[str, object]:
    # This page heads a card with its metrics; the title tells charts of one metric apart in the saved view.
    return {
        "uuid": _identifier(kind, title),
        "type": kind,
        "runsCountToCompare": 100,
        "metricSectionId": section,
        "deleted": False,
        "isGenerated": False,
        "displayName": title,
    }


def _line(metric: str, section: str, title: str, *, log_y: bool = False) -> dict[str, object]:
    return {
        **_card("LINE", section, title),
        "metricKey": metric,
        "selectedMetricKeys": [metric],
        "lineSmoothness": 0,
        "xAxisScaleType": "log",
        "scaleType": "log" if log_y else "linear",
        "range": {},
        "xAxisKey": "step",
        "selectedXAxisMetricKey": "",
        "displayPoints": False,
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "ignoreOutliers": False,
        "useGlobalXaxisKey": False,
        "useGlobalLineSmoothing": False,
    }


def _bar(metrics: list[str], section: str, title: str) -> dict[str, object]:
    return {**_card("BAR", section, title), "metricKey": metrics[0], "selectedMetricKeys": metrics}
