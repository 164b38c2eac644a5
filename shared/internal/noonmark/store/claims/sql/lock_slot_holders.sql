-- Locks the runs that hold the slots of their jobs, to cancel them for newer instants. Only the ids are known, so each is
-- looked up in every day of the ledger: a few index probes for each of these runs.
select id, scheduled_for, shard from runs
where id = any (%(ids)b::uuid[]) and state in ('waiting', 'queued', 'running', 'retrying')
order by scheduled_for, id
for update
