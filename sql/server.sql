-- name: readServerFacts
select current_setting('server_version') as version,
       current_setting('server_version_num')::int4 as version_number,
       current_setting('transaction_read_only') = 'on' as read_only,
       coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as encrypted,
       current_setting('server_encoding') as encoding,
       case
         when exists (select from pg_extension where extname = 'pg_trgm') then 'there'
         when not exists (select from pg_available_extensions where name = 'pg_trgm') then 'not installed'
         when has_database_privilege(current_database(), 'CREATE') then 'may be created'
         else 'forbidden'
       end as trigrams

-- name: readClock
-- The database's clock, which all instances share.
select clock_timestamp() as at

-- name: readSession
select current_setting('application_name') as connection, pg_backend_pid() as process
