-- Finds the dead letters that match a filter, in the order of their runs, up to a limit. Null matches everything.
select run_id, scheduled_for
from dead_letters
where (%(runs)s::uuid[] is null or run_id = any (%(runs)s::uuid[]))
  and (%(job)s::uuid is null or job_id = %(job)s)
  and (%(name)s::text is null or name = %(name)s)
  and (%(namespace)s::text is null or namespace = %(namespace)s)
  and (%(fingerprint)s::text is null or fingerprint = %(fingerprint)s)
  and (%(reason)s::text is null or reason = %(reason)s)
  and (%(since)s::timestamptz is null or died_at >= %(since)s)
  and (%(until)s::timestamptz is null or died_at < %(until)s)
  and (%(after)s::uuid is null or run_id > %(after)s)
order by run_id
limit %(limit)s
