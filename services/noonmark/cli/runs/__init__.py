"""Commands about runs, dead letters and rejections.

May import: `cli.terminal`, `cli.connections`, `cli.submissions`. Start with `commands.py`.
"""
