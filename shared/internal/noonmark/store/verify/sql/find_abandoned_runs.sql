-- Finds unfinished runs of a step that nothing will continue: their worker is gone, or the timer or the queue that they wait
-- in. A run whose worker left or lapsed lately is about to be requeued. Leases mean nothing while this primary has not received
-- heartbeats for long enough, or no trigger watches them. A heartbeat or a timer continues nothing if its time is later than any
-- can be: retries wait for a century at most.
select runs.id::text
from runs
where id = any (%(ids)s::uuid[]) and scheduled_for >= %(since)s and scheduled_for < %(until)s
  and case
          when state in ('running', 'cancelling') and owner <> 0 then
              (select continuous_since from lease_watch) < %(settled)s
              and not exists (
                  select from workers
                  where workers.id = runs.owner
                    and coalesce(lapsed_at, left_at, beat_at + make_interval(secs => least(lease_seconds, 86400)))
                        between %(settled)s and %(settled)s::timestamptz + interval '2 days')
          when state in ('running', 'cancelling') then
              not exists (select from timers where timers.job_id = runs.job_id and timers.run_id = runs.id and kind = 4
                                               and fire_at < %(settled)s::timestamptz + interval '37000 days')
          when state = 'retrying' or (state = 'waiting' and reason = 'undeliverable') then
              not exists (select from timers where timers.job_id = runs.job_id and timers.run_id = runs.id and kind = 2
                                               and fire_at < %(settled)s::timestamptz + interval '37000 days')
          when state = 'waiting' then
              not exists (select from waits where waits.run_id = runs.id)
      end
