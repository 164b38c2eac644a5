"""The observer: what is usual for each job, and alerts about what is not."""
