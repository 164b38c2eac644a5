-- Sets dead runs to `discarded`, a final state, because an operator decided so.
with discarded as (
    update runs
    set state = 'discarded', reason = coalesce(%(reason)s, reason)
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s and state = 'dead'
    returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
              started_at, finished_at, error, holds_slot
), deleted_dead_letters as (
    delete from dead_letters where run_id in (select id from discarded)
)
select * from discarded
