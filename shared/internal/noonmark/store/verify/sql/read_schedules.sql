-- Reads each version of jobs that was valid after `since`, with the time in which it was valid. Left out are schedules whose
-- instants the text alone does not determine, and single instants.
select version.job, version.version, version.schedule, version.since, version.until
from unnest(%(ids)s::uuid[]) as wanted (id)
cross join lateral (
    select every.job_id::text as job, every.version, every.schedule, every.until,
           coalesce(lag(every.until) over (order by every.version), every.created_at) as since
    from (select id as job_id, version, schedule, null::timestamptz as until, created_at from jobs where id = wanted.id
          union all
          select old.job_id, old.version, old.schedule, replaced_at, jobs.created_at
          from job_versions as old join jobs on jobs.id = old.job_id
          where old.job_id = wanted.id and old.version < 1000000000) as every
) as version
where coalesce(version.until, 'infinity') > %(since)s and version.schedule is not null
  and version.schedule::text !~ '"(calendars|max_runs|run_at)"'
