"""Child processes of the worker: the supervisor that starts and kills them, and their executor.

May import: nothing from the other sub-packages of the worker. Start with `executor.py`; `supervisor.py` says
why a separate process starts the children.
"""
