"""The development stack: a real Postgres, a real Kafka and every service under one small supervisor.

Nothing here is used in production. `noonmark dev up` (see `noonmark.cli.operations.dev`) calls
`noonmark.devstack.commands`; the tests start single servers through `noonmark.devstack.postgres.server` and
`noonmark.devstack.kafka.server`. Services are started by command line only, never imported.

The package itself imports nothing, so that `noonmark.devstack.processes.launch` needs only the standard
library.
"""
