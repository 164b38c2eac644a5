"""Shared parts behind the routes: transactions, group commit, live events, lag. Built once per process.

May import: `api.http`. Start with `context.py`.
"""
