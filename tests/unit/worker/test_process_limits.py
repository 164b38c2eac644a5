"""Every limit of the process is known once, and found when it was changed."""

from __future__ import annotations

import resource

from noonmark.worker.processes.process_limits import LIMIT_NAMES, changed_limits, read_limits


def test_every_limit_of_the_platform_is_read_once():
    numbers = {getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}
    assert set(LIMIT_NAMES) == set(read_limits()) == numbers
    assert LIMIT_NAMES[resource.RLIMIT_NOFILE] == "RLIMIT_NOFILE"
    assert read_limits()[resource.RLIMIT_NOFILE] == resource.getrlimit(resource.RLIMIT_NOFILE)


def test_a_changed_limit_is_found():
    before = read_limits()
    assert changed_limits(before) == []
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    lower = 0 if soft != 0 else min(1, hard) if hard != resource.RLIM_INFINITY else 1
    if lower == soft:
        return  # the hard limit is 0, too: it cannot be changed here
    resource.setrlimit(resource.RLIMIT_CORE, (lower, hard))
    try:
        assert changed_limits(before) == [resource.RLIMIT_CORE]
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
