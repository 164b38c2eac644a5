-- Finds further runs with the key of a run of the step. A unique index prevents them, so this finds what a damaged or missing
-- index let in: the index is searched by job and instant only, whose order no change of a collation affects.
select one.id::text as run, other.id::text as other
from runs as one
cross join lateral (
    select runs.id
    from runs
    where runs.job_id = one.job_id and runs.scheduled_for = one.scheduled_for and runs.id > one.id
      and runs.origin || '/' || runs.request_id = one.origin || '/' || one.request_id
    offset 0
) as other
where one.id = any (%(ids)s::uuid[]) and one.scheduled_for >= %(since)s and one.scheduled_for < %(until)s
