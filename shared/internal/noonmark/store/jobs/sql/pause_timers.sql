-- Holds the instants of jobs that are paused. What recurs waits for the resume, which says what becomes of it; a single
-- instant goes on to be planned, for the claim in SQL does not look at the job. Rows are replaced rather than updated:
-- a claim whose statement began before this commit would find an updated timer, and the job as it was beside it.
with gone as (
    delete from timers
    where ctid = any (array(
        select mine.ctid
        from unnest(%(ids)b::uuid[]) as wanted (id),
             lateral (select ctid from timers where job_id = wanted.id and kind in (0, 1, 3) offset 0) as mine
    ))
    returning *
)
insert into timers (fire_at, scheduled_for, after_at, job_id, run_id, job_version, runs_left, after_offset, shard, lane,
                    kind, namespace, pool)
select case when job_id = any (%(recurring)b::uuid[]) then %(never)s else fire_at end, scheduled_for, after_at, job_id,
       run_id, job_version, runs_left, after_offset, shard, lane, case kind when 0 then 1 else kind end, namespace, pool
from gone
