-- Opens callbacks before their requests are sent, because a target may report before it answers. Only for runs that this
-- worker owns under this fence; a row of an earlier attempt of the run is replaced.
insert into callbacks (run_id, scheduled_for, job_id, fence, worker, token_hash, opened_at)
select wanted.id, owned.scheduled_for, owned.job_id, wanted.fence, %(worker)s, wanted.token_hash, noonmark_now()
from unnest(%(ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(fences)b::int[], %(token_hashes)b::bytea[])
         as wanted (id, scheduled_for, fence, token_hash),
     lateral (
         select scheduled_for, job_id from runs
         where id = wanted.id and scheduled_for = wanted.scheduled_for and fence = wanted.fence
           and owner = %(worker)s and epoch = %(epoch)s and state = 'running'
         offset 0
     ) as owned
on conflict (run_id) do update
set fence = excluded.fence, worker = excluded.worker, token_hash = excluded.token_hash, opened_at = excluded.opened_at,
    deadline_at = null
where callbacks.fence <= excluded.fence
returning run_id
