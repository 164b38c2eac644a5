"""Child processes, ports and errors of the development stack.

May import: nothing of the other rooms. Start with `processes.py`.
"""
