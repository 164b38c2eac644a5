-- A worker process starts its life: a new row each time, never a name used again. It says what it can run.
insert into workers (pool, host, pid, lease_seconds, beat_at, catalogue, slots)
values (%(pool)s, %(host)s, %(pid)s, %(lease_seconds)s, noonmark_now(), %(catalogue)s::jsonb, %(slots)s)
returning id, epoch
