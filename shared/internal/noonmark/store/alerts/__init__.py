"""What the observer stores: statistics, alerts, deliveries; and the queries that find problems.

May import: `store.database`, `store.outcomes`. Start with `alerts.py`.
"""
