-- Inserts the row of a namespace that had only defaults until now.
insert into namespaces (name, created_at, updated_at) values (%(name)s, noonmark_now(), noonmark_now())
on conflict do nothing
