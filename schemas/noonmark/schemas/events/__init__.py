"""Events on Kafka: envelope, submissions, lifecycle events, alerts, run messages, AsyncAPI document.

May import: `schemas.jobs`, `schemas.problems`. Start with `envelope.py`.
"""
