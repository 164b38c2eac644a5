"""A small queue on Postgres with the three commands that a race needs: `prepare`, `load` and `work`."""

import os
import signal
import struct
import sys
import time
from pathlib import Path

import psycopg

START = """
update queue set started_at = clock_timestamp()
where id in (select id from queue where due <= now() and started_at is null limit 100 for update skip locked)
returning id, extract(epoch from due)::float8
"""


def prepare(connection):
    connection.execute(
        "create table queue (id bigint generated always as identity, due timestamptz not null,"
        " started_at timestamptz, finished_at timestamptz)"
    )


def load(connection):
    with connection.cursor() as cursor:
        cursor.executemany(
            "insert into queue (due) values (to_timestamp(%s))", [(float(line),) for line in sys.stdin]
        )


def work(connection):
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    name = os.environ.get("RACE_STAMPS")
    while not stop:
        rows = connection.execute(START).fetchall()
        if name:
            with Path(f"{name}.{os.getpid()}").open("ab") as stamps:
                stamps.write(b"".join(struct.pack("<dd", due, time.time()) for _, due in rows))
        connection.execute(
            "update queue set finished_at = clock_timestamp() where id = any (%s)", [[row[0] for row in rows]]
        )
        if not rows:
            time.sleep(0.005)


if __name__ == "__main__":
    with psycopg.connect(os.environ["RACE_URL"], autocommit=True) as session:
        {"prepare": prepare, "load": load, "work": work}[sys.argv[1]](session)
