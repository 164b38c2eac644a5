-- Makes the planner compute the next instants of jobs again, from the last settled one. Rows are replaced instead of
-- updated: a claim whose statement began before this commit would see an updated timer, but the old job row. A paused job
-- keeps waiting for its resume. Rows are found job by job: without statistics, Postgres would scan all planned timers.
with deleted as (
    delete from timers
    where ctid = any (array(
        select mine.ctid
        from unnest(%(jobs)b::uuid[]) as wanted (id),
             lateral (select ctid from timers where job_id = wanted.id and kind in (1, 3) offset 0) as mine
    ))
    returning *
), added as (
    insert into timers (fire_at, scheduled_for, after_at, after_offset, job_id, run_id, job_version, runs_left, shard, lane,
                        kind, namespace, pool)
    select case when job_id = any (%(paused)b::uuid[]) then fire_at else noonmark_now() end,
           coalesce(after_at, scheduled_for), after_at, after_offset, job_id, run_id, job_version, runs_left, shard, lane,
           kind, namespace, pool
    from deleted
    returning job_id
)
select (select count(*) from deleted), (select count(*) from added),
       (select count(*) from deleted where after_at is null)
