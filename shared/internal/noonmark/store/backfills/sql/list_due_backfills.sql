-- Lists the running backfills of owned shards, page by page, so that many of them cannot make one pass long.
select id, shard from backfills
where state = 'running' and shard = any (%(shards)b::smallint[]) and id > %(after)s
order by id limit %(limit)s
