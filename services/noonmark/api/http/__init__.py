"""HTTP without routes: problems, bodies, entity tags, cursors, replies.

May import: no other sub-package of `api`. Start with `problems.py`.
"""
