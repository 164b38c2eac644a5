"""The batch consumer: returns records, takes marks for settled ones, commits offsets only past these.

May import: `kafka` top level. Start with `consumer.py`; `offsets.py` decides how far a partition may be
committed, `commits.py` commits. `ranges.py` reads topics without a group.
"""
