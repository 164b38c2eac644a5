"""How every route begins: who calls, which permission the route needs, the transaction, idempotency.

May import: `api.http`, `api.backend`. Start with `routing.py`.
"""
