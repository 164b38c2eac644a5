"""Backfills: planned, started, cancelled (`requests.py`), and executed step by step (`steps.py`).

May import: `store.claims`, `store.limits`, `store.jobs` and what is below them. Start with `requests.py`.
"""
