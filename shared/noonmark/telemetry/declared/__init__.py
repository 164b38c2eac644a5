"""Metrics by the part that shows them; `noonmark.telemetry.metrics` is where they are imported from."""
