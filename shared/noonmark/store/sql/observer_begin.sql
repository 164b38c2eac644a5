-- The first look: what was before it is nobody's alert. A silence is counted from here, at the earliest. Likewise where the
-- clock was set back behind the last look: what is made now must not count as looked at already.
with now as (
    select (lpad(to_hex((extract(epoch from noonmark_now() - back) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid as at
    from unnest('{0 s, 1 h}'::interval[]) as b (back) order by back
), places as (
    select (array_agg(at))[1] as present, (array_agg(at))[2] as hour_ago from now
)
insert into observer_state as state (heard_at, walked_to, ruled_to, died_until)
select noonmark_now(), hour_ago, hour_ago, noonmark_now() - interval '1 hour' from places
on conflict (only_row) do update
set heard_at = least(state.heard_at, excluded.heard_at), walked_to = excluded.walked_to, ruled_to = excluded.ruled_to,
    died_until = excluded.died_until
where greatest(state.heard_at, state.died_until) > noonmark_now()
   or greatest(state.walked_to, state.ruled_to) > (select present from places)
