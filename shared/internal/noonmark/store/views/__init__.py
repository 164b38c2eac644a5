"""Reads for people: listings with filters and paging, single objects in full, and the facts behind `why`.

May import: `store.tables`, `store.documents` and, for `why.py`, most rooms. Start with `paging.py`.
"""
