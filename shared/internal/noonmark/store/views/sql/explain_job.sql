-- One job by its key for `why`, with its namespace and the users who paused them: the audit entry is committed with the
-- pause, so their times are close.
select job.id, job.namespace, job.name, job.kind, job.handler, job.lane, job.pool, job.shard, job.schedule::text,
       job.policy ->> 'overlap' as overlap, job.state, job.state_reason, job.paused_at, job.paused_by,
       noonmark_readable(job.work) ->> 'pause_after_failures' is not null as pauses_itself,
       (select actor_name from audit_log
        where object in ('job:' || job.id, job.id::text) and action = 'job.pause' and outcome = 'done'
          and at between job.paused_at and job.paused_at + interval '30 s' order by id limit 1) as paused_actor,
       job.updated_at, space.paused_at as namespace_paused_at, space.pause_reason as namespace_pause_reason,
       (select actor_name from audit_log
        where object in ('namespace:' || space.name, space.name) and action = 'namespace.pause' and outcome = 'done'
          and at between space.paused_at and space.paused_at + interval '30 s' order by id limit 1) as namespace_actor,
       space.max_in_flight, exists (select from pools where name = job.pool) as pool_known,
       (select version from zone_data where active) as zone_data
from jobs as job left join namespaces as space on space.name = job.namespace
where job.id = %(job_id)s
