-- Deletes a process that stops on request, so that it is not reported as silent.
delete from process_progress where service = %(service)s and id = %(id)s
