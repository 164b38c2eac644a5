"""The Grafana dashboards in helm/noonmark/files/dashboards.

    python -m noonmark.telemetry.dashboards helm/noonmark/files/dashboards

writes them. No panel has a series per job: use the API for single jobs.
"""
