"""Lane readers: one consumer and one thread per lane; messages that cannot be trusted are set apart.

May import: nothing of the other rooms. Start with `reader.py`.
"""
