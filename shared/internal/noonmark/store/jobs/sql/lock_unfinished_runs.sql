-- Third lock of a control statement: the unfinished runs of jobs. There is no index on `state`, which keeps run updates
-- HOT, so the runs of these jobs are read by their key, day by day.
select live.id, live.scheduled_for, live.state, live.reason, live.shard, live.origin,
       case live.origin when 'task' then split_part(live.request_id, '/', 1) end as workflow
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (
         select id, scheduled_for, state, reason, shard, origin, request_id from runs
         where job_id = wanted.id and state in ('waiting', 'queued', 'running', 'retrying', 'cancelling')
         order by scheduled_for, id
         for update
     ) as live
