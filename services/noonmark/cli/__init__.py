"""The command line: starts services, prepares databases and pools, shows what is recorded.

Modules here import nothing heavy at the top: `noonmark --help` and shell completion must not wait for
database drivers. Each command imports what it needs when it runs.
"""
