-- Makes the row of a namespace that has the defaults until now.
insert into namespaces (name, created_at, updated_at) values (%(name)s, noonmark_now(), noonmark_now())
on conflict do nothing
