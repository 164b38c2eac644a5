-- Names the new digest wherever schedules name a calendar. Nobody's document changes, so versions stay.
update jobs set schedule = regexp_replace(schedule::text, %(pair)s, %(new_pair)s, 'g')::jsonb
where namespace = %(namespace)s and (schedule ? 'calendars' or schedule ? 'any') and schedule::text ~ %(pair)s
  and state <> 'cancelled'
returning id, state
