-- Pauses locked jobs because their namespace is paused; jobs that are not active stay unchanged.
update jobs set state = 'paused', paused_at = noonmark_now(), paused_by = 'namespace', updated_at = noonmark_now()
where ctid = any (array(
        select job.ctid
        from unnest(%(ids)b::uuid[]) as wanted (id), lateral (select ctid from jobs where id = wanted.id offset 0) as job
      ))
  and state = 'active'
returning id
