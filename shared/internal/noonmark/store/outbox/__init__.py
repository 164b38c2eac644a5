"""The outbox as the dispatcher sees it: read, delete what Kafka acknowledged, park what it refuses.

May import: `store.database`. Start with `relay.py`.
"""
