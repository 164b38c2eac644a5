"""Alert rules, statistics over outcomes, and trace contexts, as pure arithmetic.

May import: `core` top level. Start with `alerts.py`.
"""
