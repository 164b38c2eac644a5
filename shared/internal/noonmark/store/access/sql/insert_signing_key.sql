-- Adds a signing key to those that are valid. If two rotations run at once, the second finds its number taken and adds
-- nothing, because one new key is what both wanted.
insert into signing_keys (namespace, key_id, secret)
select %(namespace)s, (coalesce(max(key_id::int), 0) + 1)::text, %(secret)s from signing_keys where namespace = %(namespace)s
on conflict do nothing
returning key_id, created_at
