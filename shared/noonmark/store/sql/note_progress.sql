-- Remembers up to when a topic's group has passed what was acknowledged.
insert into topic_progress (topic, passed_until, measured_at)
values (%(topic)s, %(passed_until)s, noonmark_now())
on conflict (topic) do update
set passed_until = greatest(topic_progress.passed_until, excluded.passed_until), measured_at = excluded.measured_at
