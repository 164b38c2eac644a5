"""Kafka: topics and lanes, clients, consumers, producers, lag.

May import: `core`, `schemas`, `settings`. Never `store` or `telemetry`. Start with `topics.py`, the only
place that defines topic names.
"""
