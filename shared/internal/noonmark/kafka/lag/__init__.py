"""Lag of consumer groups, measured from outside, and proof of what a group has passed.

May import: `kafka` top level. Start with `lag.py`.
"""
