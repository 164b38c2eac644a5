"""Which privileges on tables statements need, read from a server's log with `debug_print_parse`.

`python -m tests.support.needed_privileges LOG URL` prints, for each user of the log, its privileges on each table.
The server must run with `debug_print_parse=on`, `debug_pretty_print=off` and `log_line_prefix='%u|'`.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import psycopg

VERBS = {1: "insert", 2: "select", 4: "update", 8: "delete", 16: "truncate"}
_NEEDED = re.compile(rb"\{RTEPERMISSIONINFO :relid (\d+) :inh \w+ :requiredPerms (\d+) :checkAsUser 0 ")
_USER = re.compile(rb"^(\w+)\|")


def needed(log: Path) -> Mapping[tuple[str, int], set[str]]:
    """Return the verbs by user and table's oid."""
    found: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    user = ""
    with log.open("rb") as lines:
        for line in lines:
            if named := _USER.match(line):
                user = named[1].decode()
            for oid, bits in set(_NEEDED.findall(line)):
                found[user, int(oid)] |= {verb for bit, verb in VERBS.items() if int(bits) & bit}
    return found


def named(found: Mapping[tuple[str, int], Iterable[str]], url: str) -> dict[str, dict[str, str]]:
    """Return user to table to verbs; tables of the schema `public` alone."""
    with psycopg.connect(url) as connection:
        names = dict(
            connection.execute(
                "select oid::bigint, relname from pg_class where relnamespace = 'public'::regnamespace"
            ).fetchall()
        )
    tables: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for (user, oid), verbs in sorted(found.items()):
        if oid in names:
            tables[user][names[oid]] = " ".join(sorted(verbs))
    return {user: dict(sorted(of.items())) for user, of in sorted(tables.items())}


if __name__ == "__main__":
    for user, tables in named(needed(Path(sys.argv[1])), sys.argv[2]).items():
        print(f"{user}:")
        for table, verbs in tables.items():
            print(f"  {table}: {verbs}")
