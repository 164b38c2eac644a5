"""Tools for the whole store: connections, named statements, columns, row types, hints, tenant scope.

May import: nothing of the other sub-packages. Start with `statements.py` and `connect.py`.
"""
