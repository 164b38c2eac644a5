"""The batch consumer: records in, settled records back, offsets committed only past settled records.

May import: `kafka` top level. Start with `consumer.py`; `offsets.py` decides how far a partition may be
committed, `commits.py` commits.
"""
