"""Namespaces: defaults, caps, quotas, and pauses of all their jobs.

May import: `store.jobs`, `store.documents`, `store.schedules`, `store.database`. Start with `namespaces.py`.
"""
