-- Writes the new digest into every schedule that names the calendar. No job document changes, so versions stay.
update jobs set schedule = regexp_replace(schedule::text, %(pair)s, %(new_pair)s, 'g')::jsonb
where namespace = %(namespace)s and (schedule ? 'calendars' or schedule ? 'any') and schedule::text ~ %(pair)s
  and state <> 'cancelled'
returning id, state
