-- Lists the first runs of queues that have capacity, high lane first, then the oldest, with what their jobs need now and the
-- slots that they hold. Each queue is an ordered index scan that ends after its number of rows. What a workflow job needs, its
-- workflow runs need: a run of a task needs only the cap, and a workflow run everything but the cap, which is for its tasks.
select first.run_id, first.scheduled_for, first.job_id, first.namespace, first.lane, first.since, first.key,
       case when run.origin <> 'task' then job.limits end, case when run.origin <> 'task' then job.overlap end,
       limit_held.keys, overlap_held.run_id is not null as has_overlap_slot, run.pool
from unnest(%(keys)b::uuid[], %(most)b::int[]) as queue (key, most),
     lateral (
         select run_id, scheduled_for, job_id, namespace, lane, since, key from waits
         where key = queue.key order by lane, since limit queue.most
     ) as first
     left join lateral (
         select origin, pool from runs where id = first.run_id and runs.scheduled_for = first.scheduled_for offset 0
     ) as run on true
     left join lateral (
         select policy -> 'limits' as limits, policy ->> 'overlap' as overlap from jobs where id = first.job_id offset 0
     ) as job on true
     left join lateral (
         select array_agg(key) as keys from limit_slots where run_id = first.run_id offset 0
     ) as limit_held on true
     left join lateral (
         select run_id from slots where key = first.job_id and run_id = first.run_id offset 0
     ) as overlap_held on true
