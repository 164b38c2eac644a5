"""`noonmark verify`: check the promises on the ledger of an installation in use.

May import: `verify`, `store.verify`, `cli.connections`, `cli.terminal`. Start with `commands.py`.
"""
