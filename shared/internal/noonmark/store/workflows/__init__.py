"""Workflows in Postgres: their tasks, and the pass that advances open workflow runs.

May import: `store.runs`, `store.limits`, `store.outcomes`, `store.documents`, `core.workflows`.
All ends of tasks are reported by `facts.py`. Start with `advance.py`.
"""
