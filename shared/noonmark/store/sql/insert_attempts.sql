-- What an attempt left that did not succeed. Repeated after a lost reply without harm.
insert into attempts (run_id, scheduled_for, fence, attempt, worker, outcome, error, started_at, finished_at)
select run_id, scheduled_for, fence, attempt, worker, outcome, error, started_at, noonmark_now()
from unnest(%(run_ids)s::uuid[], %(scheduled_for)s::timestamptz[], %(fences)s::int[], %(attempts)s::int[],
            %(workers)s::bigint[], %(outcomes)s::text[], %(errors)s::text[], %(started_at)s::timestamptz[])
     as u (run_id, scheduled_for, fence, attempt, worker, outcome, error, started_at)
on conflict do nothing
