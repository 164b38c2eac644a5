-- Opens workflow runs: queued to running, owned by -1, which is no worker: its tasks do the work. A run that was cancelled,
-- paused or opened meanwhile, or whose start deadline has passed, is left alone.
with opened as (
    update runs
    set state = 'running', owner = -1, epoch = 0, started_at = noonmark_now(), attempt = attempt + 1
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and state = 'queued' and (start_by is null or started_at is not null or start_by >= noonmark_now())
    returning id, scheduled_for, job_id, job_version
)
insert into workflows (run_id, scheduled_for, job_id, job_version, shard, generation, progress, choices, opened_at)
select opened.id, opened.scheduled_for, opened.job_id, opened.job_version, wanted.shard, wanted.generation, wanted.progress,
       wanted.choices, noonmark_now()
from opened
join unnest(%(ids)b::uuid[], %(shards)b::smallint[], %(generations)b::smallint[], %(progress)b::bytea[], %(choices)b::bytea[])
     as wanted (id, shard, generation, progress, choices) using (id)
returning run_id
