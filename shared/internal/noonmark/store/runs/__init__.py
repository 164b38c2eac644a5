"""Running runs: worker leases, starts, outcomes, cancels, callbacks, lost runs, redrives of dead letters.

May import: `store.limits`, `store.outcomes`, `store.database`. Start with `starts.py`, then `finish.py`.
"""
