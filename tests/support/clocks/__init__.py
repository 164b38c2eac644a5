"""Wall clocks that a test sets for one process, while it runs."""
