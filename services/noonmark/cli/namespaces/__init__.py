"""Commands about namespaces and their limits, keys and audit log.

May import: `cli.terminal`, `cli.connections`. Start with `namespaces.py`.
"""
