-- Deletes callbacks whose attempt has its outcome, and their deadlines. A deadline that a claim has locked is left to that
-- claim, which finds no open callback.
with closed as (
    delete from callbacks
    where run_id = any (%(ids)b::uuid[]) and fence <= (%(fences)s::jsonb ->> run_id::text)::int
)
delete from timers
where ctid = any (array(
    select found.ctid
    from unnest(%(ids)b::uuid[], %(job_ids)b::uuid[]) as wanted (id, job_id),
         lateral (
             select ctid from timers where job_id = wanted.job_id and kind = 4 and run_id = wanted.id for update skip locked
         ) as found
))
