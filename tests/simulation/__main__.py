"""Simulated days by hand: `python -m tests.simulation --seeds 200`, or one seed again with `--seed N -v`."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

import structlog
from tests.simulation.judging import Judged, judge_day
from tests.support.stack import NOT_DURABLE, Postgres

from noonmark.devstack.postgres.server import start_postgres
from noonmark.store.migrations.migrate import migrate
from noonmark.verify import page

_TEMPLATE = "simulation_template"


def main() -> int:
    """Run as a program; 0: every day was judged clean."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="only this seed")
    parser.add_argument("--seeds", type=int, default=20, help="the seeds from 1 to this number")
    parser.add_argument("-v", "--verbose", action="store_true", help="print faults and counts")
    options = parser.parse_args()
    seeds = [options.seed] if options.seed is not None else range(1, options.seeds + 1)
    # The warnings of hundreds of outages would hide the verdicts.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        server = start_postgres(Path(folder) / "postgres", settings=NOT_DURABLE)
        try:
            postgres = Postgres(server.url)
            postgres.run(f"create database {_TEMPLATE}")
            migrate(postgres.url_of(_TEMPLATE))
            for seed in seeds:
                began = time.process_time()
                judged = judge_day(postgres, _TEMPLATE, seed)
                print(f"{judged.line()}; {time.process_time() - began:.1f} s CPU", flush=True)
                _explain(judged, verbose=options.verbose)
                if judged.problem:
                    failed.append(seed)
        finally:
            server.stop()
    print(f"{len(failed)} of {len(seeds)} days failed" + (f": seeds {failed}" if failed else ""))
    return 1 if failed else 0


def _explain(judged: Judged, *, verbose: bool) -> None:
    if verbose:
        print("\n".join(judged.faults))
        print("\n".join(f"{name}: {number}" for name, number in sorted(judged.counts.items())))
    if judged.report is not None and (verbose or judged.problem):
        print("\n".join(page(judged.report)))
    if judged.problem:
        print(f"{judged.problem}\nreplay: python -m tests.simulation --seed {judged.seed} -v")


if __name__ == "__main__":
    sys.exit(main())
