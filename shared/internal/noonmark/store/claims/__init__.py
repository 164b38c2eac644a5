"""The trigger's claim: due timers become runs and outbox rows in one transaction.

May import: `store.runs`, `store.limits`, `store.outcomes`, `store.documents`, `store.schedules`. Start with
`claims.py`.
"""
