-- Resumes locked jobs that were paused with their namespace. A job that a user paused separately in the meantime stays
-- paused.
update jobs
set state = 'active', paused_at = null, paused_by = null, resumed_at = noonmark_now(), resume_choice = %(missed)s,
    updated_at = noonmark_now()
where ctid = any (array(
        select job.ctid
        from unnest(%(ids)b::uuid[]) as wanted (id), lateral (select ctid from jobs where id = wanted.id offset 0) as job
      ))
  and state = 'paused' and paused_by = 'namespace'
returning id
