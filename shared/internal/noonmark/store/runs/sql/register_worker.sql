-- Registers a worker process: a new row each time, an id is never used again. The row contains what the worker can run and read.
insert into workers (pool, host, pid, lease_seconds, beat_at, catalogue, slots, release, capabilities)
values (%(pool)s, %(host)s, %(pid)s, %(lease_seconds)s, noonmark_now(), %(catalogue)s::jsonb, %(slots)s, %(release)s,
        %(capabilities)s)
returning id, epoch
