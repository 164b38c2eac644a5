"""Runs under way: worker leases, starts, outcomes, cancels, callbacks, lost runs, dead letters redriven.

May import: `store.limits`, `store.outcomes`, `store.database`. Start with `starts.py`, then `finish.py`.
"""
