-- Releases runs whose target answered 202: they stay `running` with owner 0 until the target reports, and a death or lapse
-- of the worker no longer affects them. A run that was asked to stop is cancelled instead, because nothing of it runs here.
-- The deadline is a timer, written in the same statement. Seconds are passed by run id, [fence, seconds], and are looked up
-- per row, as in `finish_detailed`.
with released as (
    update runs
    set state = case state when 'cancelling' then 'cancelled' else state end,
        finished_at = case state when 'cancelling' then noonmark_now() end,
        owner = case state when 'cancelling' then owner else 0 end,
        epoch = case state when 'cancelling' then epoch else 0 end
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and fence = (%(seconds)s::jsonb -> id::text ->> 0)::int and owner = %(worker)s and epoch = %(epoch)s
      and state in ('running', 'cancelling')
    returning id, fence, state, finished_at, scheduled_for, job_id, job_version, shard, lane, namespace, pool
), dated as (
    update callbacks
    set deadline_at = noonmark_now() + make_interval(secs => (%(seconds)s::jsonb -> run_id::text ->> 1)::float8)
    where run_id = any (array(select id from released where state = 'running'))
      and fence = (%(seconds)s::jsonb -> run_id::text ->> 0)::int
), timed as (
    insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
    select noonmark_now() + make_interval(secs => (%(seconds)s::jsonb -> id::text ->> 1)::float8), scheduled_for, job_id, id,
           job_version, shard, lane, 4, namespace, pool
    from released where state = 'running'
)
select id, fence, state, finished_at from released
