-- Starts a batch of runs with the same fence number: queued to running, owned by (worker, epoch).
-- Refused are runs with a higher fence, runs whose start deadline has passed, and all runs of a lapsed worker.
-- The deadline applies to the first start only: a retry of a run that started in time is not late.
-- Rows that this worker already owns are returned again, because the reply to an earlier try may have been lost; the caller
-- never passes runs that it knows it owns. The work itself comes from Postgres, never from Kafka.
with live as (
    select 1 from workers where id = %(worker)s and epoch = %(epoch)s and lapsed_at is null and left_at is null
), started as (
    update runs
    set state = 'running', owner = %(worker)s, epoch = %(epoch)s, started_at = noonmark_now(),
        attempt = attempt + (state = 'queued')::int
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and fence = %(fence)s and pool = %(pool)s
      and (state = 'queued' or (state = 'running' and owner = %(worker)s and epoch = %(epoch)s))
      and (start_by is null or started_at is not null or start_by >= noonmark_now())
      and exists (select from live)
    returning id, scheduled_for, job_id, job_version, origin, request_id, namespace, lane, attempt, losses, holds_slot,
              started_at, shard, due_at
), work as (
    select started.*, job.kind, job.handler, job.work, job.timeout
    from started
    left join lateral (
        -- Without `timeouts`, a document is started that Postgres cannot read at all.
        select kind, handler, work, case when %(timeouts)s::bool then work -> 'timeout_seconds' end as timeout from jobs
        where jobs.id = started.job_id and jobs.version = started.job_version offset 0
    ) as job on true
), batch as (
    insert into start_batches (worker, epoch, first_scheduled_for, last_scheduled_for, started_at, overdue_at, run_ids)
    select %(worker)s, %(epoch)s, min(scheduled_for), max(scheduled_for), noonmark_now(),
           -- A value that is no number of seconds belongs to a run that its worker rejects; the others start.
           noonmark_now() + make_interval(secs => least(coalesce(max(
               case when json_typeof(timeout) = 'number' then timeout::text::numeric end
           ), 3600), 4e8)::float8 + %(grace_seconds)s),
           array_agg(id)
    from work
    having count(*) > 0
    returning id
)
select id, scheduled_for, job_id, job_version, origin, request_id, namespace, lane, attempt, losses, holds_slot,
       started_at, shard, kind, handler, work::text, (select id from batch) as batch_id, due_at
from work
