"""The Grafana dashboards, as they stand in helm/noonmark/files/dashboards.

    python -m noonmark.telemetry.dashboards helm/noonmark/files/dashboards

writes them. No panel has a line per job: what is known of single jobs is asked of the API.
"""
