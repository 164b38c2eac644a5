"""The command line: it starts services, prepares databases, and calls the API for everything else.

May import: everything. Start with `main.py`, which lists the commands; each sub-package has
the commands of one subject.
"""
