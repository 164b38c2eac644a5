-- Contents are immutable and identified by their digest, so an existing row is the same.
insert into calendar_contents (digest, body) values (%(digest)s, %(body)s::jsonb) on conflict do nothing
