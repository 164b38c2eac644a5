"""Workflows: the graph of a job's tasks, and what follows from the verdicts of their runs. Pure code."""
