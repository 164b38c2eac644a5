#!/bin/sh
# What the official image's start script does: owns the data, initializes it once over a socket, and starts the server.
set -eu
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA"
    chown -R postgres:postgres /var/lib/postgresql
    chmod 700 "$PGDATA"
    chown postgres:postgres /run/postgresql
    exec setpriv --reuid=postgres --regid=postgres --init-groups sh "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    password=$(mktemp)
    printf '%s\n' "$POSTGRES_PASSWORD" >"$password"
    initdb --pgdata="$PGDATA" --username="$POSTGRES_USER" --pwfile="$password" --auth-local=trust --auth-host=scram-sha-256
    rm "$password"
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    pg_ctl --pgdata="$PGDATA" --wait --options="-c listen_addresses= -c unix_socket_directories=/tmp" start
    createdb --host=/tmp --username="$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl --pgdata="$PGDATA" --mode=fast --wait stop
fi
# The wheel's server is built without lz4.
for option; do
    shift
    [ "$option" != -cwal_compression=lz4 ] || option=-cwal_compression=on
    set -- "$@" "$option"
done
exec "$@" -c listen_addresses='*' -c unix_socket_directories=/run/postgresql
