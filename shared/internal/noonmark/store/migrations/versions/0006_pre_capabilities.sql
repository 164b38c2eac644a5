-- The release of each worker, trigger and dispatcher, and the formats beyond those of release 0.2 that it reads: a new format is
-- used once all that must read it can. Release 0.2 writes neither.
alter table workers add column release text check (length(release) <= 100),
                    add column capabilities text[] not null default '{}' check (cardinality(capabilities) <= 50);
alter table members add column release text check (length(release) <= 100),
                    add column capabilities text[] not null default '{}' check (cardinality(capabilities) <= 50);

-- A row of the outbox with several runs, of one namespace and pool, in lane 10, 11 or 12 instead of 0, 1 or 2: a dispatcher of
-- release 0.2 does not read these lanes. The arrays are of equal length, in the same order. What a run message cannot say is
-- refused here: it would end the dispatcher that reads it.
alter table outbox add column run_ids uuid[], add column job_ids uuid[], add column instants timestamptz[],
                   add column job_versions integer[],
                   drop constraint outbox_check,
                   add constraint outbox_check check (num_nonnulls(run_id, run_ids, value) = 1),
                   add constraint outbox_pointer check (value is not null or coalesce(
                       fence > 0 and length(namespace) between 1 and 128 and length(pool) between 1 and 128, false)),
                   add constraint outbox_run check (run_id is null or coalesce(
                       job_id is not null and job_version > 0 and isfinite(scheduled_for), false)),
                   add constraint outbox_runs check (run_ids is null or coalesce(
                       array_ndims(run_ids) = 1 and array_position(run_ids, null) is null
                       and array_ndims(job_ids) = 1 and array_position(job_ids, null) is null
                       and array_ndims(instants) = 1 and '-infinity' < all (instants) and 'infinity' > all (instants)
                       and array_ndims(job_versions) = 1 and 0 < all (job_versions)
                       and cardinality(run_ids) = cardinality(job_ids) and cardinality(run_ids) = cardinality(instants)
                       and cardinality(run_ids) = cardinality(job_versions), false));
