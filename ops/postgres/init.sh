#!/usr/bin/env bash
# Runs once, when the volume is empty: the product's roles, its database, pgvector.
set -euo pipefail
: "${MEMORYOS_OWNER_PASSWORD:?set MEMORYOS_OWNER_PASSWORD in .env}"
: "${MEMORYOS_APP_PASSWORD:?set MEMORYOS_APP_PASSWORD in .env}"
: "${MEMORYOS_LEDGER_PASSWORD:?set MEMORYOS_LEDGER_PASSWORD in .env}"

# By standard input: a command line can be read by every process of a machine.
{
    printf '\\set owner_password %s\n' "$MEMORYOS_OWNER_PASSWORD"
    printf '\\set app_password %s\n' "$MEMORYOS_APP_PASSWORD"
    printf '\\set ledger_password %s\n' "$MEMORYOS_LEDGER_PASSWORD"
    cat /ops/roles.sql
    echo 'create database memoryos owner memoryos_owner;'
    echo '\connect memoryos'
    echo 'create extension if not exists vector;'
} | psql --no-psqlrc --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres
