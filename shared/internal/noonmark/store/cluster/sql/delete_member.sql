-- A member that stops hands its shards over at once.
delete from members where role = %(role)s and id = %(id)s
