"""Limits and slots: the wait queue of runs, and the promotion pass that queues them when there is capacity.

May import: `store.outcomes`, `store.schedules`, `store.database`. Start with `promotion.py`.
"""
