-- The first look: what was before it is nobody's alert. A silence is counted from here, at the earliest.
insert into observer_state (heard_at, walked_to, died_until)
select noonmark_now(),
       (lpad(to_hex((extract(epoch from noonmark_now() - interval '1 hour') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid,
       noonmark_now() - interval '1 hour'
on conflict do nothing
