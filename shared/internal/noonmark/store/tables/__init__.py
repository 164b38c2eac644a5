"""The tables in SQLAlchemy Core, for reads.

May import: nothing of the other rooms. Start with `tables.py`, which exports all of them.
"""
