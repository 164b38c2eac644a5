-- An event that was refused is not remembered: sent again once its cause is gone, it is looked at anew.
delete from inbox where event_key = any (%(keys)b::uuid[])
