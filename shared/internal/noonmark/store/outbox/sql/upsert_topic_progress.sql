-- Stores the instant up to which a topic's group has passed what was acknowledged, and when the topic last lost records.
insert into topic_progress (topic, passed_until, measured_at, lost_at)
values (%(topic)s, %(passed_until)s, noonmark_now(), case when %(lost)s::bool then noonmark_now() end)
on conflict (topic) do update
set passed_until = greatest(topic_progress.passed_until, excluded.passed_until), measured_at = excluded.measured_at,
    lost_at = coalesce(excluded.lost_at, topic_progress.lost_at)
