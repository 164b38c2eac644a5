"""The relay's producer: every message of a batch comes back acknowledged or with a reason.

May import: `kafka` top level. Start with `producer.py`.
"""
