"""Commands about jobs: list, show, edit, pause, trigger, backfill.

May import: `cli.terminal`, `cli.connections`, `cli.runs`. Start with `commands.py`.
"""
