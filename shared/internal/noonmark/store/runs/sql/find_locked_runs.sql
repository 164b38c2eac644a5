-- Returns which of these runs another transaction has locked, without waiting for it: a statement about all of them has waited
-- too long. The others are locked for the length of this statement only.
with free as materialized (
    select id from runs
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
    for no key update skip locked
)
select id from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s and id not in (select id from free)
