"""Models of Grafana dashboards (panels, rows, variables), and their JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

SCHEMA_VERSION: Final = 41
"""Schema version of Grafana 12. Older versions can read it, newer ones migrate it."""

_WIDTH: Final = 24
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}

Threshold = tuple[float, Literal["green", "yellow", "orange", "red"]]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL expression and the legend of its series, such as `{{lane}}`."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        title: shown above the panel.
        description: its meaning, and what to do.
        queries: the series that it shows.
        unit: Grafana's unit, such as `s`, `short`, `reqps`, `percentunit`, `bytes`.
        kind: Grafana's panel type.
        thresholds: values from which it has another colour.
        width: in columns, of 24.
        height: in Grafana's rows.
        stacked: stack the series.
        text: Markdown, of a text panel.
    """

    title: str
    description: str
    queries: Sequence[Query] = ()
    unit: str = "short"
    kind: Literal["timeseries", "stat", "heatmap", "table", "text"] = "timeseries"
    thresholds: Sequence[Threshold] = ()
    width: int = 12
    height: int = 8
    stacked: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class Variable:
    """A dashboard variable; all values by default. Its values come from `query` or `values`."""

    name: str
    label: str
    query: str = ""
    values: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row: a heading with the panels below it."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard. `uid` is also the name of its file."""

    uid: str
    title: str
    description: str
    variables: Sequence[Variable]
    rows: Sequence[Row]
    links: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> Json:
        """Return Grafana's JSON. The same input gives the same output."""
        return {
            "annotations": {"list": []},
            "description": self.description,
            "editable": True,
            "graphTooltip": 1,
            "id": None,
            "links": [_link(title, url) for title, url in self.links.items()],
            "panels": list(_placed(self.rows)),
            "refresh": "30s",
            "schemaVersion": SCHEMA_VERSION,
            "tags": ["noonmark"],
            "templating": {"list": [_datasource(), *map(_variable, self.variables)]},
            "time": {"from": "now-3h", "to": "now"},
            "timepicker": {},
            "timezone": "utc",
            "title": self.title,
            "uid": f"noonmark-{self.uid}",
            "version": 1,
        }


def _placed(rows: Sequence[Row]) -> Iterator[Json]:
    """Number the panels and lay them out from left to right, below their rows' headings."""
    number, top = 0, 0
    for row in rows:
        number += 1
        grid = {"h": 1, "w": _WIDTH, "x": 0, "y": top}
        yield {
            "collapsed": False,
            "gridPos": grid,
            "id": number,
            "panels": [],
            "title": row.title,
            "type": "row",
        }
        top, left, lowest = top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > _WIDTH:
                top, left, lowest = top + lowest, 0, 0
            number += 1
            grid = {"h": panel.height, "w": panel.width, "x": left, "y": top}
            yield {"id": number, "gridPos": grid, **_panel(panel)}
            left, lowest = left + panel.width, max(lowest, panel.height)
        top += lowest


def _panel(panel: Panel) -> Json:
    common: Json = {"title": panel.title, "description": panel.description, "type": panel.kind}
    if panel.kind == "text":
        return {**common, "options": {"mode": "markdown", "content": panel.text}}
    return {
        **common,
        "datasource": _DATASOURCE,
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _OPTIONS[panel.kind],
        "targets": [_target(panel, place, query) for place, query in enumerate(panel.queries)],
    }


def _target(panel: Panel, place: int, query: Query) -> Json:
    target: Json = {
        "datasource": _DATASOURCE,
        "expr": query.expr,
        "legendFormat": query.legend,
        "refId": chr(ord("A") + place),
    }
    if panel.kind in ("stat", "table"):
        target["instant"] = True
    if panel.kind in ("heatmap", "table"):
        target["format"] = panel.kind
    return target


def _defaults(panel: Panel) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    steps += [{"color": colour, "value": value} for value, colour in panel.thresholds]
    defaults: Json = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.kind == "timeseries":
        defaults["min"] = 0
        defaults["custom"] = {
            "drawStyle": "line",
            "fillOpacity": 40 if panel.stacked else 5,
            "showPoints": "never",
            "stacking": {"mode": "normal" if panel.stacked else "none"},
            "thresholdsStyle": {"mode": "line" if panel.thresholds else "off"},
        }
    return defaults


_OPTIONS: Final[dict[str, Json]] = {
    "timeseries": {
        "legend": {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "colorMode": "value",
        "graphMode": "area",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    },
    "heatmap": {
        "calculate": False,
        "color": {"mode": "scheme", "scheme": "Blues"},
        "yAxis": {"unit": "s"},
    },
    "table": {"showHeader": True},
}


def _datasource() -> Json:
    return {
        "label": "Prometheus",
        "name": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "type": "datasource",
    }


def _variable(variable: Variable) -> Json:
    common: Json = {
        # Also matches series without the label: outside Kubernetes there is no namespace.
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "includeAll": True,
        "label": variable.label,
        "multi": True,
        "name": variable.name,
    }
    if variable.values:
        return {**common, "query": ",".join(variable.values), "type": "custom"}
    return {
        **common,
        "datasource": _DATASOURCE,
        "query": {"query": variable.query, "refId": variable.name},
        "refresh": 2,
        "sort": 1,
        "type": "query",
    }


def _link(title: str, url: str) -> Json:
    return {"title": title, "url": url, "type": "link", "targetBlank": True, "keepTime": True}
