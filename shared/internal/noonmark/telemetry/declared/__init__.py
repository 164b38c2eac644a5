"""The declarations of metrics, by the service that exports them.

May import: nothing outside of this room. Start with `declaring.py`. `noonmark.telemetry.metrics` is the
module to import metrics from.
"""
