-- Deletes alerts that were resolved long ago, with their deliveries.
with deleted as (
    delete from alerts where id = any (array(
        select id from alerts
        where raised_at < noonmark_now() - make_interval(days => %(days)s)
          and resolved_at < noonmark_now() - make_interval(days => %(days)s)
        order by raised_at limit %(limit)s
    ))
    returning id
), deliveries as (
    delete from alert_deliveries where alert_id in (select id from deleted)
)
select id from deleted
