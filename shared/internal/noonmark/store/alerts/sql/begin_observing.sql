-- Inserts the state of the first check: what happened before raises no alerts, and a silence is measured from here at the
-- earliest. It also resets the state if the clock was set back behind the last check: new rows must not count as checked.
insert into observer_state as state (heard_at, walked_to, ruled_to, died_until)
select noonmark_now(), hour_ago, hour_ago, noonmark_now() - interval '1 hour'
from noonmark_first_id(noonmark_now() - interval '1 hour') as hour_ago
on conflict (only_row) do update
set heard_at = least(state.heard_at, excluded.heard_at), walked_to = excluded.walked_to, ruled_to = excluded.ruled_to,
    died_until = excluded.died_until
where greatest(state.heard_at, state.died_until) > noonmark_now()
   or greatest(state.walked_to, state.ruled_to) > noonmark_first_id(noonmark_now())
