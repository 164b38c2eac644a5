"""Rows written with an outcome: lifecycle events, dead letters, logs, notes, emitted events, callbacks.

May import: `store.database`. Start with `events.py`.
"""
