-- The backfills that owned shards have to work on, page by page, so that many of them cannot hold up one pass.
select id, shard from backfills
where state = 'running' and shard = any (%(shards)b::smallint[]) and id > %(after)s
order by id limit %(limit)s
