"""Postgres: tables, named statements, migrations, and the repositories that use them."""
