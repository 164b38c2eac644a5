-- Jobs whose schedule names a calendar, directly or in a member of a union. Cancelled jobs never fire again. The pattern
-- matches the pair of name and digest as Postgres writes it. In a string of the schedule its quotes would be escaped, so
-- nothing else matches.
select id, name, state, schedule::text from jobs
where namespace = %(namespace)s and (schedule ? 'calendars' or schedule ? 'any') and schedule::text ~ %(pair)s
  and state <> 'cancelled'
order by id limit %(limit)s
