-- Locks open workflow runs for a hold or a release: no trigger advances or ends them until the transaction ends. Runs are locked
-- after their workflows, as a pass does.
select run_id, held_at, stopping from workflows where run_id = any (%(ids)b::uuid[]) order by run_id for update
