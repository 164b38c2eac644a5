-- Lets the instants of resumed jobs fire again. The planner adds jitter, because it finds them due too early. Rows are
-- replaced, even those that were not deferred: a claim that began before would plan them for a job that it sees as paused.
-- What has ended in their workflows (kind 5) and was parked is dealt with now; the deadline of a workflow run was not parked.
with deleted as (
    delete from timers
    where ctid = any (array(
        select mine.ctid
        from unnest(%(ids)b::uuid[]) as wanted (id),
             lateral (
                 select ctid from timers
                 where job_id = wanted.id and (kind in (1, 3) or (kind = 5 and fire_at = %(never)s)) offset 0
             ) as mine
    ))
    returning *
)
insert into timers (fire_at, scheduled_for, after_at, job_id, run_id, job_version, runs_left, after_offset, shard, lane,
                    kind, namespace, pool)
select case when kind = 5 then noonmark_now() when fire_at = %(never)s then scheduled_for else fire_at end, scheduled_for,
       after_at, job_id, run_id, job_version, runs_left, after_offset, shard, lane, kind, namespace, pool
from deleted
