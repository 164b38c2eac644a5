-- The outcomes of the last hour by window of five minutes, in the form of `noonmark.core.monitoring.recent`, in a row that is
-- written for every outcome anyway: `outcome_windows` has a row with two index entries for each window. Release 0.2 writes and
-- reads `outcome_windows`, and leaves this column as it is. A `post` migration of the next release drops that table.
alter table job_stats add column recent bytea;
