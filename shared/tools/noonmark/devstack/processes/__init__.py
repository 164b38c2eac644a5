"""Child processes, ports and errors of the development stack.

May import: nothing from the other rooms. Start with `processes.py`.
"""
