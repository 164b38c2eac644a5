-- Moves waiting runs into the lines of the gates that hold them up now; they keep their place by age. Rows are replaced:
-- a join with the table itself could be planned by statistics of another moment. What was paused since stays where it is.
with gone as (
    delete from waits where run_id = any (%(ids)b::uuid[]) and key is not null
    returning run_id, scheduled_for, job_id, since, lane, namespace, start_by
)
insert into waits (run_id, scheduled_for, job_id, reason, since, key, lane, namespace, limit_name, limit_key, start_by)
select gone.run_id, gone.scheduled_for, gone.job_id, wish.reason, gone.since, wish.key, gone.lane, gone.namespace,
       wish.limit_name, wish.limit_key, gone.start_by
from gone join unnest(%(ids)b::uuid[], %(keys)b::uuid[], %(reasons)b::text[], %(limit_names)b::text[],
                      %(limit_keys)b::text[]) as wish (id, key, reason, limit_name, limit_key) on wish.id = gone.run_id
