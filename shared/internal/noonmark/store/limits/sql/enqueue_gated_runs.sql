-- Sends runs of jobs with limits through promotion that would be queued at once elsewhere: a retry that is due, a held
-- run whose job is resumed. They stand in the line that everybody in it is looked at from. What they hold they keep.
with again as (
    update runs
    set state = 'waiting', reason = 'limit'
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and (state = 'retrying' or (state = 'waiting' and reason = %(reason)s))
    returning id, scheduled_for, job_id, lane, namespace, case when started_at is null then start_by end as start_by
)
insert into waits (run_id, scheduled_for, job_id, reason, since, key, lane, namespace, start_by)
select id, scheduled_for, job_id, 'limit', noonmark_now(), %(key)s, lane, namespace, start_by from again
on conflict (run_id) do update
    set reason = excluded.reason, key = excluded.key, lane = excluded.lane, namespace = excluded.namespace,
        start_by = excluded.start_by, limit_name = null, limit_key = null
returning run_id
