"""Metrics, logs and traces of every service.

May import: `core`, `settings`. Never `store` or `kafka`. Start with `metrics.py`, which exports every metric.
"""
