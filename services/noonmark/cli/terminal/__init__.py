"""Input and output: tables, JSON, options, prompts, exit codes.

May import: no other sub-package. Start with `output.py`.
"""
