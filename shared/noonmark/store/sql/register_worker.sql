-- A worker process starts its life: a new row each time, never a name used again.
insert into workers (pool, host, pid, lease_seconds, beat_at)
values (%(pool)s, %(host)s, %(pid)s, %(lease_seconds)s, noonmark_now())
returning id, epoch
