"""Noonmark, the bare design and other schedulers on one Postgres, one after the other, with one workload.

Each rival has a program in `programs` that uses it as its documentation shows, with settings that suit this
workload. May import: `benchmarks`. Start with `__main__.py`; `rivals.py` lists the rivals.
"""
