-- Messages in the outbox whose run does not exist. A worker drops such a message, so only those that stay are reported.
select outbox.namespace, outbox.job_id, outbox.run_id
from outbox
where outbox.run_id is not null and outbox.created_at < noonmark_now() - interval '1 minute'
  and not exists (select from runs where runs.id = outbox.run_id and runs.scheduled_for = outbox.scheduled_for)
order by outbox.slice, outbox.lane, outbox.seq
limit %(most)s
