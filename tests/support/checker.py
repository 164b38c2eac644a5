"""The checker as a program: gathers the history of a namespace, judges it, prints the report.

`python -m tests.support.checker --dsn … --bootstrap … --prefix … --target-log … --plan plan.json --json`
ends with 0 only if nothing was found. The rules are `noonmark.verify`'s; docs/verification.md lists them.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support.evidence import Place, gather, instant

from noonmark.verify import Expected, judge, page


def expected(document: dict[str, Any]) -> Expected:
    """Read a plan as `Load.write_plan` writes it."""
    jobs, namespace = document["jobs"], document["namespace"]
    return Expected(
        {
            (namespace, job["name"]): None if job["instants"] is None else [*map(instant, job["instants"])]
            for job in jobs
        },
        {(namespace, job["name"]): frozenset(job["ends"]) for job in jobs},
        {(namespace, job["name"]) for job in jobs if not job.get("seen", True)},
        rejected=set(document["rejected"]),
    )


def main() -> int:
    """Run as a program; 0: nothing found, 1: something found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--target-log", required=True, type=Path)
    parser.add_argument("--plan", required=True, type=Path)
    parser.add_argument("--partway", action="store_true", help="only what must hold at every moment")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    plan = json.loads(options.plan.read_text(encoding="utf-8"))
    place = Place(
        options.dsn,
        options.bootstrap,
        options.prefix,
        options.target_log,
        [plan["namespace"]],
        [plan["source"]],
    )
    # Whoever asks has waited for everything to settle: nothing is excused for being young.
    report = judge(gather(place), expected(plan), bound=timedelta(0), partway=options.partway)
    print(json.dumps(report.as_json(), default=str) if options.json else "\n".join(page(report)))
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
