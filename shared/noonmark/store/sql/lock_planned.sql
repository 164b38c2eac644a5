-- Locks due timers whose verdict needs the job's schedule and policies, and reads the job of each.
-- Pause, cancel and edit lock timers before jobs, so a job read here cannot change until the commit.
with due as materialized (
    select claimed.*
    from unnest(%(shards)b::smallint[]) as owned (shard),
         lateral (
             select ctid as place, scheduled_for, job_id, job_version, shard, namespace, pool from timers
             where shard = owned.shard and lane = %(lane)s and kind = 1 and fire_at <= noonmark_now()
             order by fire_at limit %(limit)s
             for update skip locked
         ) as claimed
)
select due.place::text, due.scheduled_for, due.job_id, due.job_version, due.shard, due.namespace, due.pool,
       job.state, job.schedule::text, job.policy::text, job.created_at, noonmark_now() as now
from due
left join lateral (
    select state, schedule, policy, created_at from jobs where id = due.job_id offset 0
) as job on true
