"""Processes of the installation: ownership of shards, progress, pools with their keys and handlers.

May import: `store.database`. Start with `members.py`.
"""
