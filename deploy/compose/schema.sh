#!/bin/sh
# Temporal's tables in PostgreSQL: made where they are missing, brought up to date where they are not.
set -eu

for store in temporal:temporal temporal_visibility:visibility; do
    database=${store%%:*}
    tables=/etc/temporal/schema/postgresql/v12/${store##*:}/versioned
    run() { temporal-sql-tool --plugin "$DB" --ep "$POSTGRES_SEEDS" -p "$DB_PORT" -u "$POSTGRES_USER" --db "$database" "$@"; }
    run create-database
    run setup-schema -v 0.0 || echo "the schema of $database is there already"
    run update-schema -d "$tables"
done
