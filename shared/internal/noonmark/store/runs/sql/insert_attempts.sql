-- Records attempts that did not succeed. Safe to repeat after a lost reply.
insert into attempts (run_id, scheduled_for, fence, attempt, worker, outcome, error, started_at, finished_at)
select run_id, scheduled_for, fence, attempt, worker, outcome, error, started_at, noonmark_now()
from unnest(%(run_ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(fences)b::int[], %(attempts)b::int[],
            %(workers)b::bigint[], %(outcomes)b::text[], %(errors)b::text[], %(started_at)b::timestamptz[])
     as u (run_id, scheduled_for, fence, attempt, worker, outcome, error, started_at)
on conflict do nothing
