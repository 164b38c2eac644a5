"""Reads for people: listings with filters and paging, complete objects, and the facts for `why`.

May import: `store.tables`, `store.documents`, `results` and `definitions` of `store.workflows`, and, for
`why.py`, most rooms. Start with `paging.py`.
"""
