"""Housekeeping (ledger days, pruning, lost messages) and what the leading trigger measures.

May import: `store.documents`, `store.limits`, `store.database`. Start with `housekeeping.py`.
"""
