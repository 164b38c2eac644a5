-- Share-locks those of these jobs that no other transaction is changing, without waiting for the others: no job that was locked
-- is paused, cancelled or edited until the transaction ends. Returns the state of each job; null: another transaction has it.
select wanted.id, shared.state
from unnest(%(ids)b::uuid[]) as wanted (id)
join lateral (select id from jobs where id = wanted.id offset 0) as there on true
left join lateral (select state from jobs where id = wanted.id for share skip locked) as shared on true
