"""Commands about what namespaces own: limits, keys, audit.

May import: `cli.terminal`, `cli.connections`. Start with `namespaces.py`.
"""
