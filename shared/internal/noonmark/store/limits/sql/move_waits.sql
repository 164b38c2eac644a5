-- Moves waiting runs into the queues of the gates that block them now; their position is still decided by age. Rows are
-- updated in place: a cancel that waits for one of them deletes it as it is then, and would miss one that was inserted for it.
-- The targets are one JSON object by run id, [key, reason, limit name, limit key], and are looked up per row: a join could be
-- planned with outdated statistics. Runs paused since stay. See `delete_outbox` for the array.
update waits
set (key, reason, limit_name, limit_key) = (
    select (target ->> 0)::uuid, target ->> 1, target ->> 2, target ->> 3
    from (select %(targets)s::jsonb -> waits.run_id::text) as passed (target)
)
where run_id = any (array(select unnest(%(ids)b::uuid[]))) and key is not null
