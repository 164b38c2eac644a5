-- Moves waiting runs into the queues of the gates that block them now; their position is still decided by age. Rows are
-- replaced, because a join with the table itself could be planned with outdated statistics. Runs paused since stay.
with moved as (
    delete from waits where run_id = any (%(ids)b::uuid[]) and key is not null
    returning run_id, scheduled_for, job_id, since, lane, namespace, start_by
)
insert into waits (run_id, scheduled_for, job_id, reason, since, key, lane, namespace, limit_name, limit_key, start_by)
select moved.run_id, moved.scheduled_for, moved.job_id, target.reason, moved.since, target.key, moved.lane, moved.namespace,
       target.limit_name, target.limit_key, moved.start_by
from moved join unnest(%(ids)b::uuid[], %(keys)b::uuid[], %(reasons)b::text[], %(limit_names)b::text[],
                      %(limit_keys)b::text[]) as target (id, key, reason, limit_name, limit_key) on target.id = moved.run_id
