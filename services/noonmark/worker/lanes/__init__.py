"""Lane readers: one consumer and one thread per lane; messages that fail their checks are stored as rejected.

May import: nothing from the other sub-packages of the worker. Start with `reader.py`.
"""
