-- Gives a namespace its first signing key; if several workers request it at once, one inserts it.
insert into signing_keys (namespace, key_id, secret) values (%(namespace)s, '1', %(secret)s)
on conflict do nothing
