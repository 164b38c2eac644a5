-- Contents are immutable and named by their digest: what is there already is what is wanted.
insert into calendar_contents (digest, body) values (%(digest)s, %(body)s::jsonb) on conflict do nothing
