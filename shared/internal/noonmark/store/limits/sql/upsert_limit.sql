-- Creates or updates a limit. No row is returned if nothing changed.
insert into limits (namespace, name, max_running, rate_count, rate_seconds, burst, updated_at)
values (%(namespace)s, %(name)s, %(max_running)s, %(rate_count)s, %(rate_seconds)s, %(burst)s, noonmark_now())
on conflict (namespace, name) do update
    set max_running = excluded.max_running, rate_count = excluded.rate_count, rate_seconds = excluded.rate_seconds,
        burst = excluded.burst, updated_at = excluded.updated_at
    where (limits.max_running, limits.rate_count, limits.rate_seconds, limits.burst)
          is distinct from (excluded.max_running, excluded.rate_count, excluded.rate_seconds, excluded.burst)
returning name
