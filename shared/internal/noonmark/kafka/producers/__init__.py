"""The relay's producer: returns for every message of a batch whether it was acknowledged, or why not.

May import: `kafka` top level. Start with `producer.py`.
"""
