-- Gives a namespace its first signing key; of several workers that call for it at once, one does.
insert into signing_keys (namespace, key_id, secret) values (%(namespace)s, '1', %(secret)s)
on conflict do nothing
