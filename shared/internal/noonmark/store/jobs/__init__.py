"""Submissions: the only way in which jobs are created and changed, from Kafka, the API or an outbox.

May import: `store.claims`, `store.runs`, `store.limits`, `store.outcomes`, `store.documents`,
`store.schedules`, `store.cluster`. Start with `submit.py`; `create.py` inserts new jobs, `control.py`
dispatches requests about existing ones, `locks.py` states the order of locks.
"""
