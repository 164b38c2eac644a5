"""The worker's lease, and the process that renews it.

May import: nothing from the other sub-packages of the worker. Start with `lease.py`.
"""
