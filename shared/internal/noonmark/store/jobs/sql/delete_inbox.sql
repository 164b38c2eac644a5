-- Deletes rejected events from the inbox: if one is sent again after its cause is fixed, it is checked again.
delete from inbox where event_key = any (%(keys)b::uuid[])
