"""The protocol of all kinds of work but Python handlers, and the small kinds: scripts, Kafka events.

May import: `worker.processes`. Start with `protocol.py`.
"""
