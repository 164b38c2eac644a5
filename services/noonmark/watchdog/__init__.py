"""The watchdog: calls an URL outside while every part makes progress, and stops when one does not."""
