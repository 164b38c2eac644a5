"""Commands that create jobs from files: submit, apply, import.

May import: `cli.terminal`, `cli.connections`, `cli.schedules`. Start with `submit.py`.
"""
