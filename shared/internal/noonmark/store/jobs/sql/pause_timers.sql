-- Defers the instants of paused jobs. Those of recurring jobs wait for the resume, which says what happens to them. A
-- single instant is planned by the trigger from now on, because the claim in SQL does not check the job. Rows are replaced
-- instead of updated: a claim whose statement began before this commit would see an updated timer, but the old job row.
with deleted as (
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
from deleted
