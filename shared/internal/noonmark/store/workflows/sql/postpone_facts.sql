-- Moves timers that a pass cannot deal with now; it holds their locks. Those of a paused job wait for the resume.
update timers set fire_at = coalesce(%(fire_at)s, noonmark_now() + make_interval(secs => %(seconds)s))
where ctid = any (array(select unnest(%(places)b::text[])::tid))
