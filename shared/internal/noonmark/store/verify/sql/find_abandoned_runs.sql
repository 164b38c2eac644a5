-- Finds unfinished runs of a step that nothing will continue: their worker is gone, or the timer or the queue that they wait
-- in. A run whose worker left or lapsed lately is about to be requeued. Leases mean nothing while this primary has not received
-- heartbeats for long enough, or no trigger watches them. A heartbeat or a timer continues nothing if its time is later than any
-- can be: retries wait for a century at most. An open workflow run (owner -1) is continued by the run of a task, or by a timer
-- that says that one has ended or that it is to stop: such a timer is due, or soon again, or parked until a resume. A deadline to
-- come only ends it. A queued workflow run has its row in the outbox, or the timer that opens it.
select runs.id::text
from runs
where id = any (%(ids)s::uuid[]) and scheduled_for >= %(since)s and scheduled_for < %(until)s
  and case
          when state in ('running', 'cancelling') and owner = -1 then
              not exists (
                  select from runs as task
                  where task.job_id = runs.job_id and task.scheduled_for = runs.scheduled_for and task.origin = 'task'
                    and starts_with(task.request_id, runs.id || '/')
                    and (task.finished_at is null
                         or exists (select from timers where timers.job_id = task.job_id and timers.run_id = task.id and kind = 5
                                                         and (fire_at <= noonmark_now() + interval '5 minutes'
                                                              or fire_at >= '9999-12-31 00:00+00'))))
              and not exists (select from timers where timers.job_id = runs.job_id and timers.run_id = runs.id and kind = 5
                                                   and fire_at <= noonmark_now() + interval '5 minutes')
          when state = 'queued' and pool = '$workflow' then
              not exists (select from timers where timers.job_id = runs.job_id and timers.run_id = runs.id and kind = 5
                                               and fire_at <= noonmark_now() + interval '5 minutes')
              and not exists (select from outbox where slice = runs.shard and (run_id = runs.id or runs.id = any (run_ids)))
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
