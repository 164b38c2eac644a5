-- A member that stops gives up its shards at once.
delete from members where role = %(role)s and id = %(id)s
