"""The Grafana dashboards, generated into helm/noonmark/files/dashboards.

May import: `telemetry`. Start with `overview.py`; `parts.py` builds the JSON.
"""
