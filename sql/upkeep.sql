-- name: flushStatistics
-- PostgreSQL counts changes in its session and passes them on at most once a second.
select pg_stat_force_next_flush()

-- name: listChangedTables
-- Thresholds of autovacuum's default settings.
select format('%I.%I', s.schemaname, s.relname) as name
  from pg_stat_user_tables s
  join pg_class c on c.oid = s.relid
 where s.n_mod_since_analyze > 50 + 0.1 * greatest(c.reltuples, 0)
 order by name
 limit :limit

-- name: listTablesToVacuum
-- Thresholds of autovacuum's default settings, but at most 5,000 rows. A vacuum holds the only session and
-- writes whole pages to the log: for 5,000 new events of 2 KB 12 MiB in 30 ms, for as many removed ones
-- 30 to 80 MiB in half a second. TOAST tables count by themselves.
-- Also tables that were not vacuumed for a day, because a restart loses the counts and transaction ids
-- wrap around. Five at a time, so that one which can't be vacuumed does not block all others.
with tables as (
  select format('%I.%I', s.schemaname, s.relname) as name,
         s.last_vacuum,
         s.n_dead_tup > least(50 + 0.2 * greatest(c.reltuples, 0), 5000)
           or s.n_ins_since_vacuum > least(1000 + 0.2 * greatest(c.reltuples, 0), 5000) as due
    from pg_stat_all_tables s
    join pg_class c on c.oid = s.relid
   where c.relkind in ('r', 'm', 't')
)
select name
  from tables
 where due
    or name in (select name
                  from tables
                 where last_vacuum is null
                    or last_vacuum < now() - interval '1 day'
                 order by last_vacuum nulls first, name
                 limit 5)
 order by name
 limit :limit
