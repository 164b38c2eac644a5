-- Second lock of every control statement, after the job's timers and before its runs.
select id, namespace, name, lane, pool, shard, schedule, policy, unique_name, state, state_reason, paused_by,
       version, event_sequence, kind, updated_at
from jobs where id = %(job_id)s for update
