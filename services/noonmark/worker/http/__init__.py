"""HTTP jobs: one guarded, signed request per attempt.

May import: `worker.kinds`. Start with `kind.py`.
"""
