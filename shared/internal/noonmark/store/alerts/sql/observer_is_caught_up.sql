-- Whether the outcomes of every partition are read up to the present. Nothing is concluded from old outcomes.
select coalesce(bool_and(caught_up), false) from observer_offsets where topic = %(topic)s
