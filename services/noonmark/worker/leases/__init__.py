"""The worker's lease, and the process that renews it.

May import: nothing of the other rooms. Start with `lease.py`.
"""
