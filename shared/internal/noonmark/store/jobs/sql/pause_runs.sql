-- Makes the locked runs of paused jobs wait. The fence rises, so messages in flight are refused, and outbox rows are
-- deleted, because a waiting run has none; a row with several runs stays, and the start of this one is refused. A run that
-- waits already only changes its reason and leaves its wait queue.
with paused as (
    update runs
    set state = 'waiting', reason = 'paused', fence = fence + 1, owner = null, epoch = null
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and (state in ('queued', 'retrying') or (state = 'waiting' and reason <> 'paused'))
    returning id, scheduled_for, job_id
), unsent as (
    delete from outbox where slice = any (%(shards)b::smallint[]) and lane < 3 and run_id = any (%(ids)b::uuid[])
)
insert into waits (run_id, scheduled_for, job_id, reason, since)
select id, scheduled_for, job_id, 'paused', noonmark_now() from paused
on conflict (run_id) do update set reason = excluded.reason, since = excluded.since, key = null
