"""Metrics, one module per service; import them from `noonmark.telemetry.metrics`."""
