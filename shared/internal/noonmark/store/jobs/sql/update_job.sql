-- Replaces the definition of a job. The old version is archived, because runs planned with it keep it. A job that was not
-- paused before is paused here only if its namespace is.
with archived as (
    insert into job_versions (job_id, version, name, kind, handler, lane, pool, work, schedule, policy, labels,
                              description, owner, replaced_at)
    select id, version, name, kind, handler, lane, pool, work, schedule, policy, labels, description, owner, noonmark_now()
    from jobs where id = %(job_id)s and version = %(version)s
)
update jobs
set name = coalesce(%(name)s, name), kind = %(kind)s, handler = %(handler)s, lane = %(lane)s, pool = %(pool)s,
    schedule = %(schedule)s::jsonb, policy = %(policy)s::jsonb, work = %(work)s::json, labels = %(labels)s::jsonb,
    description = %(description)s, owner = %(owner)s, idempotency_key = coalesce(%(idempotency_key)s, idempotency_key),
    unique_name = unique_name or %(unique_name)s, state = %(state)s, state_reason = null,
    paused_at = case when %(state)s = 'paused' then coalesce(paused_at, noonmark_now()) end,
    paused_by = case when %(state)s = 'paused' then coalesce(paused_by, 'namespace') end, version = version + 1,
    event_sequence = coalesce(%(sequence)s, event_sequence), updated_at = noonmark_now()
where id = %(job_id)s and version = %(version)s
returning version
