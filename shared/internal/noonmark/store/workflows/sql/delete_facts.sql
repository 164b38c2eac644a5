-- Deletes timers that a pass has dealt with; it holds their locks.
delete from timers where ctid = any (array(select unnest(%(places)b::text[])::tid))
