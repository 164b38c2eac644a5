-- Messages in the outbox whose run does not exist. A worker drops such a message, so only those that stay are reported.
select outbox.namespace, message.job_id, message.run_id
from outbox,
     lateral (
         select outbox.run_id, outbox.job_id, outbox.scheduled_for where outbox.run_id is not null
         union all
         select * from unnest(outbox.run_ids, outbox.job_ids, outbox.instants)
     ) as message (run_id, job_id, scheduled_for)
where outbox.created_at < noonmark_now() - interval '1 minute'
  and not exists (select from runs where runs.id = message.run_id and runs.scheduled_for = message.scheduled_for)
order by outbox.slice, outbox.lane, outbox.seq
limit %(most)s
