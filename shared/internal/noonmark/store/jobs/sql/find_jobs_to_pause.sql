-- Jobs to pause because of their failures: their last executed runs, by due instant, all died of one cause. Only runs of
-- the job's current version count, and none from before its last resume, so that an edited or resumed job is tried again.
-- Skipped, cancelled and discarded runs do not count, nor do those of tasks, of which the workflow run has the verdict.
-- A job that Postgres cannot read (half a surrogate pair, NUL, no number) is not paused.
select job.id, job.most, last.error
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (
         select id, version, resumed_at, most
         from jobs,
              lateral (select noonmark_readable(work) ->> 'pause_after_failures' as told) as field,
              lateral (select case when told ~ '^[0-9]{1,9}$' then told::int end as most) as number
         where id = wanted.id and state = 'active' and most is not null
         offset 0
     ) as job,
     lateral (
         select count(*) as runs, count(distinct letter.fingerprint) as causes,
                (array_agg(ended.error order by ended.scheduled_for desc, ended.id desc))[1] as error,
                bool_and(letter.run_id is not null and ended.job_version = job.version
                         and (job.resumed_at is null or ended.finished_at > job.resumed_at)) as all_count
         from (
             select id, scheduled_for, job_version, finished_at, error
             from runs
             where job_id = job.id and state in ('succeeded', 'dead', 'unknown') and origin <> 'task'
             order by scheduled_for desc, id desc
             limit job.most
         ) as ended
         left join dead_letters as letter on letter.run_id = ended.id
     ) as last
where last.runs = job.most and last.causes = 1 and last.all_count
