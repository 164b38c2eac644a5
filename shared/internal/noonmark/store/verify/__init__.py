"""Reads slices of the ledger for `noonmark verify`, in short read-only snapshots.

May import: `store.database`. Start with `reader.py`.
"""
