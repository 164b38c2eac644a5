-- Settles dead runs for good: a person decided that they stay as they are.
with discarded as (
    update runs
    set state = 'discarded', reason = coalesce(%(reason)s, reason)
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s and state = 'dead'
    returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
              started_at, finished_at, error, holds_slot
), gone as (
    delete from dead_letters where run_id in (select id from discarded)
)
select * from discarded
