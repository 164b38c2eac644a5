-- A process that stops as it was asked is not missed.
delete from process_progress where service = %(service)s and id = %(id)s
