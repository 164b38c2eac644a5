"""The start of every route: caller, required permission, transaction, idempotency.

May import: `api.http`, `api.backend`. Start with `routing.py`.
"""
