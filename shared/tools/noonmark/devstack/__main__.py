"""The detached supervisor: `python -m noonmark.devstack OPTIONS-AS-JSON`, started by `up --detach`."""

from __future__ import annotations

import sys

from noonmark.devstack.commands import supervise
from noonmark.devstack.options import StackOptions
from noonmark.devstack.processes.errors import DevStackError
from noonmark.devstack.report import Reporter


def main() -> int:
    """Runs the stack described by the first argument; all output goes to its log."""
    options = StackOptions.from_json(sys.argv[1])
    reporter = Reporter(None, options.state_dir / "logs" / "supervisor.log")
    try:
        return supervise(options, reporter)
    except DevStackError as error:
        reporter.fail(error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
