-- Takes due timers of one lane that say that a run of a task has ended, or that a workflow run is to be looked at, and locks the
-- open workflows that they are about. One row for each workflow. A workflow that another trigger advances now is left out
-- (`locked` is null although its run is under way): its timers are not touched and are taken later.
-- Locks: timers, workflows, jobs, paused namespaces; runs are locked by the statements that write them. A job that is being
-- changed has no state here: its timers are left alone, too, so that nothing of it starts once a pause has been committed.
with due as materialized (
    select claimed.*
    from unnest(%(shards)b::smallint[]) as owned (shard),
         lateral (
             select ctid as place, run_id, scheduled_for from timers
             where shard = owned.shard and lane = %(lane)s and kind = 5
               and fire_at between '0001-01-02 00:00+00' and noonmark_now()
             order by fire_at limit %(limit)s
             for update skip locked
         ) as claimed
), facts as materialized (
    select due.place, due.scheduled_for, run.origin, run.request_id, run.state, run.reason,
           -- The run of a task that somebody inserted may have any key: then it is of no workflow.
           case when run.origin = 'task' and run.request_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/'
                then split_part(run.request_id, '/', 1)::uuid else due.run_id end as workflow_id
    from due
    left join lateral (
        select origin, request_id, state, reason from runs
        where id = due.run_id and scheduled_for = due.scheduled_for offset 0
    ) as run on true
), locked as materialized (
    select * from workflows
    where run_id = any (array(select distinct workflow_id from facts))
    order by run_id
    for update skip locked
), told as (
    select workflow_id, min(scheduled_for) as scheduled_for, array_agg(place) as places,
           array_agg(request_id) filter (where origin = 'task') as keys,
           array_agg(state) filter (where origin = 'task') as states,
           array_agg(coalesce(reason, '')) filter (where origin = 'task') as reasons,
           bool_or(origin is distinct from 'task') as asked
    from facts group by workflow_id
)
select told.workflow_id, coalesce(locked.scheduled_for, told.scheduled_for) as scheduled_for, told.places::text[], told.keys,
       told.states, told.reasons, told.asked, locked.run_id is not null as locked, locked.generation, locked.progress,
       locked.choices, locked.stopping, locked.held_at, locked.opened_at,
       run.job_id, run.job_version, run.state, run.reason, run.origin, run.namespace, run.lane, run.attempt, run.fence,
       run.started_at, run.start_by, run.holds_slot,
       case when job.state is null then (select 'deleted' where not exists (select from jobs where jobs.id = run.job_id))
            -- Locked: its resume would not find what is parked now, and not yet committed.
            when exists (select from namespaces where name = run.namespace and paused_at is not null for share) then 'paused'
            else job.state end as job_state,
       run.namespace in (select name from namespaces where max_in_flight is not null) as capped, noonmark_now() as now
from told
left join locked on locked.run_id = told.workflow_id
left join lateral (
    select * from runs
    where runs.id = told.workflow_id and runs.scheduled_for = coalesce(locked.scheduled_for, told.scheduled_for)
      and runs.pool = '$workflow'
    offset 0
) as run on true
left join lateral (select state from jobs where jobs.id = run.job_id for share skip locked) as job on true
