-- Finds unfinished runs of a step that nothing will continue: their worker is gone, or the timer or the queue that they wait
-- in. A run whose worker left or lapsed lately is about to be requeued. Leases mean nothing while this primary has not received
-- heartbeats for long enough, or no trigger watches them.
select runs.id::text
from runs
where id = any (%(ids)s::uuid[]) and scheduled_for >= %(since)s and scheduled_for < %(until)s
  and case
          when state in ('running', 'cancelling') and owner <> 0 then
              (select continuous_since from lease_watch) < %(settled)s
              and not exists (
                  select from workers
                  where workers.id = runs.owner
                    and coalesce(lapsed_at, left_at, beat_at + make_interval(secs => lease_seconds)) >= %(settled)s)
          when state in ('running', 'cancelling') then
              not exists (select from timers where timers.job_id = runs.job_id and timers.run_id = runs.id and kind = 4)
          when state = 'retrying' or (state = 'waiting' and reason = 'undeliverable') then
              not exists (select from timers where timers.job_id = runs.job_id and timers.run_id = runs.id and kind = 2)
          when state = 'waiting' then
              not exists (select from waits where waits.run_id = runs.id)
      end
