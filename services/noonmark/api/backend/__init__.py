"""What routes work with: transactions, group commit, live events, lag; built once per process.

May import: `api.http`. Start with `context.py`.
"""
