-- Publishes all tables of Gatehouse for a copy on another server: docs/cluster.md has the steps.
begin;
do $$
declare
  name text;
begin
  for name in
    select format('%I.%I', n.nspname, c.relname)
      from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
     where n.nspname in ('hooks', 'links', 'ops', 'gatehouse', 'public')
       and c.relkind = 'r'
       and c.relreplident = 'd'
       and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)
  loop
    execute 'alter table ' || name || ' replica identity full';
  end loop;
end
$$;
create publication gatehouse_copy for all tables;
commit;
