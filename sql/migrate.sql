-- name: hasMigrations
select to_regclass('gatehouse.migrations') is not null as present

-- name: listMigrations
select number, name, sha256 from gatehouse.migrations order by number

-- name: recordMigration
insert into gatehouse.migrations (number, name, sha256) values (:number, :name, :sha256)

-- name: readSchemas
select coalesce(jsonb_agg(nspname), '[]') as names from pg_namespace
