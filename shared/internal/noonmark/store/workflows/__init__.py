"""Workflows in Postgres: their tasks, and the pass that advances open workflow runs."""
