-- Lets the next instants of jobs be found anew, from the last one that has its verdict. Rows are replaced rather than
-- updated: a claim whose statement began before this commit would find an updated timer, and the old job beside it.
-- A paused job keeps waiting for its resume. Rows are found job by job: on missing statistics Postgres would walk the
-- planned timers of all jobs.
with gone as (
    delete from timers
    where ctid = any (array(
        select mine.ctid
        from unnest(%(jobs)b::uuid[]) as wanted (id),
             lateral (select ctid from timers where job_id = wanted.id and kind in (1, 3) offset 0) as mine
    ))
    returning *
), made as (
    insert into timers (fire_at, scheduled_for, after_at, after_offset, job_id, run_id, job_version, runs_left, shard, lane,
                        kind, namespace, pool)
    select case when job_id = any (%(paused)b::uuid[]) then fire_at else noonmark_now() end,
           coalesce(after_at, scheduled_for), after_at, after_offset, job_id, run_id, job_version, runs_left, shard, lane,
           kind, namespace, pool
    from gone
    returning job_id
)
select (select count(*) from gone), (select count(*) from made),
       (select count(*) from gone where after_at is null)
