"""HTTP without routes: problems, bodies, entity tags, cursors, replies.

May import: nothing of the other rooms. Start with `problems.py`.
"""
