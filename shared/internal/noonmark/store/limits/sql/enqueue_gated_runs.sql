-- Lets runs of jobs with limits go through promotion that would otherwise be queued at once: a due retry, a deferred run
-- whose job is resumed. They join the queue of runs that no pass has checked yet, and keep the slots that they hold.
with gated as (
    update runs
    set state = 'waiting', reason = 'limit'
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and (state = 'retrying' or (state = 'waiting' and reason = %(reason)s))
    returning id, scheduled_for, job_id, lane, namespace, case when started_at is null then start_by end as start_by
)
insert into waits (run_id, scheduled_for, job_id, reason, since, key, lane, namespace, start_by)
select id, scheduled_for, job_id, 'limit', noonmark_now(), %(key)s, lane, namespace, start_by from gated
on conflict (run_id) do update
    set reason = excluded.reason, key = excluded.key, lane = excluded.lane, namespace = excluded.namespace,
        start_by = excluded.start_by, limit_name = null, limit_key = null
returning run_id
