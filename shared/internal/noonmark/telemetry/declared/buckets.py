"""Histogram buckets that several services use."""

from __future__ import annotations

from typing import Final

STATEMENT: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds of one or a few statements."""

BATCH: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
"""Sizes of batches."""
