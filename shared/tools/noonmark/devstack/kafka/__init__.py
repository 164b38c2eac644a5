"""A real single-node Kafka from the jars that Maven resolves.

May import: `devstack.processes`. Start with `server.py`.
"""
