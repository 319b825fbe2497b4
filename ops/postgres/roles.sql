-- Roles of the product. Run once per cluster as a superuser, before `memoryos migrate`.
-- Passwords come from the caller:  psql -v owner_password=... -v app_password=... -v ledger_password=... -f roles.sql
-- Nobody but a superuser may bypass row level security; the app role neither owns tables nor bypasses.
create role memoryos_owner  login nosuperuser nobypassrls createdb password :'owner_password';
create role memoryos_app    login nosuperuser nobypassrls password :'app_password';
create role memoryos_ledger login nosuperuser nobypassrls password :'ledger_password';
-- SQL readers (people with a read-only login for one tenant) are members of this group.
create role memoryos_reader nologin nosuperuser nobypassrls;
alter role memoryos_app    set statement_timeout = '60s';
alter role memoryos_app    set lock_timeout = '10s';
alter role memoryos_app    set idle_in_transaction_session_timeout = '60s';
alter role memoryos_ledger set statement_timeout = '30s';
alter role memoryos_ledger set lock_timeout = '10s';
alter role memoryos_ledger set idle_in_transaction_session_timeout = '30s';
alter role memoryos_reader set statement_timeout = '30s';
