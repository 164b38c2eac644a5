"""API keys, signing keys, idempotent responses and the audit log.

May import: `store.database`, `store.tables`, `store.views`. Start with `api_keys.py`.
"""
