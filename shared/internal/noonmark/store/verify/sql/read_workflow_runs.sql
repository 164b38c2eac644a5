-- Reads workflow runs, and the runs of their tasks of all generations, which are found by the ledger's unique key. Results and
-- errors are not transferred.
with flow as materialized (
    select * from runs where id = any (%(ids)s::uuid[]) and scheduled_for >= %(since)s and scheduled_for < %(until)s
), found as (
    select * from flow
    union all
    select task.*
    from flow
    join lateral (
        select * from runs
        where runs.job_id = flow.job_id and runs.scheduled_for = flow.scheduled_for and runs.origin = 'task'
          and split_part(runs.request_id, '/', 1) = flow.id::text
        offset 0
    ) as task on true
)
select id::text, job_id::text, job_version, namespace, scheduled_for, last_scheduled_for, origin, request_id, state, reason,
       attempt, fence, lane, queued_at, started_at, finished_at, losses, null::text as result, null::text as error, pool, owner,
       epoch, start_by, instants, shard, zone_data, holds_slot, null::text as result_digest, null::text as error_digest, due_at
from found
