"""Tools for every other room: connections, named statements, columns, row types, hints, tenant scope.

May import: nothing of the other rooms. Start with `statements.py` and `connect.py`.
"""
