-- Claims due timers whose plan is that of a group: one run now, and the next instant. It writes runs and outbox rows and advances
-- the timers, in one statement. A run that takes its job's slot needs no row for that: `after_at` of the timer is its instant.
-- A timer belongs to a group if all is equal that decides its plan. The others stay as they are, among them those whose job has a
-- limit of runs, was just resumed, or whose slot another run holds, and those of namespaces with a cap: `found` less `claimed` is
-- their number.
-- Pause, cancel and edit lock timers before jobs, so a job read here cannot change until the commit. Zoned timers (kind 3) need
-- the active version of the zone data, see `lock_planned_timers`. There is no ON CONFLICT, which needs a WAL record more for each
-- row: if a run or a slot exists already, nothing is written, and the timers are planned one by one.
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
), alike as materialized (
    select due.*, plan.takes_slot, plan.next_at, plan.next_after_at, plan.next_after_offset
    from due
    join lateral (
        select state, schedule, policy, resumed_at from jobs where id = due.job_id offset 0
    ) as job on true
    join unnest(%(at)b::timestamptz[], %(after_at)b::timestamptz[], %(after_offset)b::int[], %(schedules)b::text[]::jsonb[],
                %(policies)b::text[]::jsonb[], %(takes_slot)b::bool[], %(next_at)b::timestamptz[],
                %(next_after_at)b::timestamptz[], %(next_after_offset)b::int[])
         as plan (at, after_at, after_offset, schedule, policy, takes_slot, next_at, next_after_at, next_after_offset)
         on plan.at = due.scheduled_for and plan.schedule = job.schedule and plan.policy is not distinct from job.policy
            and plan.after_at is not distinct from due.after_at and plan.after_offset is not distinct from due.after_offset
    left join lateral (
        select true as held from slots where key = due.job_id and slot_no = 0 offset 0
    ) as slot on plan.takes_slot
    left join lateral (
        select true as unfinished from runs
        where job_id = due.job_id and scheduled_for = due.after_at and origin = 'schedule' and request_id = '' and holds_slot
          and finished_at is null offset 0
    ) as last_run on plan.takes_slot and due.after_at is not null
    where slot.held is null and last_run.unfinished is null and job.state = 'active' and due.runs_left is null
      and (job.resumed_at is null or job.resumed_at <= due.scheduled_for)
      and due.namespace not in (select name from namespaces where max_in_flight is not null)
), started as (
    update timers
    set fire_at = alike.next_at, scheduled_for = alike.next_at, after_at = alike.next_after_at,
        after_offset = alike.next_after_offset
    from alike
    where timers.ctid = alike.place
    returning noonmark_uuid7() as id, alike.takes_slot, alike.scheduled_for, alike.job_id, alike.job_version, alike.shard,
              alike.namespace, alike.pool
), made as (
    insert into runs (id, scheduled_for, queued_at, job_id, job_version, fence, lane, shard, zone_data, state, origin,
                      holds_slot, namespace, pool)
    select id, scheduled_for, noonmark_now(), job_id, job_version, 1, %(lane)s, shard,
           (select id from zone_data where active), 'queued', 'schedule', takes_slot, namespace, pool
    from started
), enqueued as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, %(lane)s, noonmark_now(), id, job_id, scheduled_for, 1, job_version, namespace, pool
    from started where not %(arrays)s
), numbered as (
    select *, (row_number() over (partition by shard, namespace, pool order by scheduled_for) - 1) / 40 as part
    from started where %(arrays)s
), enqueued_together as (
    insert into outbox (slice, lane, created_at, fence, namespace, pool, run_ids, job_ids, instants, job_versions)
    select shard, %(lane)s + 10, noonmark_now(), 1, namespace, pool,
           array_agg(id), array_agg(job_id), array_agg(scheduled_for), array_agg(job_version)
    from numbered group by shard, namespace, pool, part
)
select (select count(*) from due) as found, (select count(*) from started) as claimed,
       case when %(named)s then (select array_agg(array[id, job_id]) from started) end as made
