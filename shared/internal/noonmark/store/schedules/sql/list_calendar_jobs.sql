-- Jobs whose schedule names a calendar, alone or in a member of a union. Cancelled ones never fire again.
-- The pattern is that of the pair of name and digest as Postgres writes it. Within a string of the schedule its
-- quotes would be escaped, so nothing else is met by it.
select id, name, state, schedule::text from jobs
where namespace = %(namespace)s and (schedule ? 'calendars' or schedule ? 'any') and schedule::text ~ %(pair)s
  and state <> 'cancelled'
order by id limit %(limit)s
