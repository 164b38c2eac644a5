"""The outbox as the dispatcher uses it: read, delete what Kafka acknowledged, park what Kafka refuses.

May import: `store.database`. Start with `relay.py`.
"""
