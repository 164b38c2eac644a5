"""Everything that happens because time passed: due jobs, due retries, lapsed leases, vanished messages."""
