-- Locks due timers whose verdict needs the job's schedule and policies, and reads the job of each.
-- Pause, cancel and edit lock timers before jobs, so a job read here cannot change until the commit.
-- Zoned timers (kind 3) are claimed only by a process that plans with the active version of the zone data. The caller holds
-- the lock that a change of that version takes exclusively, so what this snapshot shows stays true until the commit.
-- An instant that no driver can read, such as `infinity`, is left alone: it would stop all claims of its lane. It is left out
-- at the end: as a condition of the scan it would mislead the planner.
with due as materialized (
    select claimed.*
    from unnest(%(shards)b::smallint[]) as owned (shard),
         lateral (
             select ctid as place, scheduled_for, after_at, job_id, job_version, runs_left, after_offset, shard, namespace,
                    pool
             from timers
             where shard = owned.shard and lane = %(lane)s and kind = %(kind)s
               and fire_at between '0001-01-02 00:00+00' and noonmark_now()
             order by fire_at limit %(limit)s
             for update skip locked
         ) as claimed
    where %(kind)s <> 3 or exists (select from zone_data where active and version = %(zone_data)s)
)
select due.place::text, due.scheduled_for, due.after_at, due.job_id, due.job_version, due.runs_left, due.after_offset,
       due.shard, due.namespace, due.pool, job.state, job.schedule::text, job.policy::text, job.created_at, job.updated_at,
       job.resumed_at, job.resume_choice, noonmark_now() as now, (select ledger_floor from install) as floor,
       due.namespace in (select name from namespaces where max_in_flight is not null) as capped
from due
left join lateral (
    select state, schedule, policy, created_at, updated_at, resumed_at, resume_choice from jobs where id = due.job_id offset 0
) as job on true
where due.scheduled_for between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
  and coalesce(due.after_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00', true)
