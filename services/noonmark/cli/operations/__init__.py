"""Commands for operators: services, database, pools, lag, alerts, development stack.

May import: `cli.terminal`, `cli.connections`. Start with `services.py`.
"""
