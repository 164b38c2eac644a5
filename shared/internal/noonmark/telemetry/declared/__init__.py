"""The declarations of metrics, by the part that shows them.

May import: nothing outside of this room. Start with `declaring.py`. `noonmark.telemetry.metrics` is the
module to import metrics from.
"""
