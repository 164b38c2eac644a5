"""Input and output: tables, JSON, options, prompts, exit codes.

May import: nothing of the other rooms. Start with `output.py`.
"""
