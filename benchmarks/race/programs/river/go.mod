module noonmark/benchmarks/race/river

go 1.24

require (
	github.com/jackc/pgx/v5 v5.7.6
	github.com/riverqueue/river v0.51.2
	github.com/riverqueue/river/riverdriver/riverpgxv5 v0.51.2
)
