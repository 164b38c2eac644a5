-- The latest runs of a job, and all that wait: in a queue, for a retry, or for a report. There is no index on `state`, so
-- runs are found by the job's key, by their rows in `waits`, and by their timers. Of a workflow, the latest are workflow runs.
select id, scheduled_for from (
    select id, scheduled_for from runs
    where job_id = %(job_id)s and origin <> 'task' order by scheduled_for desc, id desc limit %(most)s
) as latest
union
select run_id, scheduled_for from (
    select run_id, scheduled_for from waits where job_id = %(job_id)s order by since limit %(most)s
) as waiting
union
select run_id, scheduled_for from (
    select run_id, scheduled_for from timers where job_id = %(job_id)s and kind in (2, 4) order by fire_at limit %(most)s
) as timed
