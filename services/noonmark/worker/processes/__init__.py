"""Child processes of the worker: the supervisor that starts and kills them, and their executor.

May import: nothing of the other rooms. Start with `executor.py`; `supervisor.py` says why a process of its
own starts children.
"""
