-- Locks the runs of orphaned batches before they are ended, and returns those that another transaction has locked: the worker
-- that records their outcomes, or a person. They and their batches are left to the next pass. A trigger that waited for them
-- would hold up all other lost runs, and could deadlock, because it has locked batches and runs that others wait for.
with locked as materialized (
    select id from runs
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and owner = any (%(workers)b::bigint[]) and started_at = any (%(started_at)b::timestamptz[])
      and state in ('running', 'cancelling')
    for no key update skip locked
)
select id from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and owner = any (%(workers)b::bigint[]) and started_at = any (%(started_at)b::timestamptz[])
  and state in ('running', 'cancelling') and id not in (select id from locked)
