-- name: listTransferTables
-- All names are quoted for SQL, except "member", the name of a column in JSON. Generated columns are left out.
-- octet_length() knows the size of a large value without reading it. Other values are small.
select format('%I.%I', n.nspname, c.relname) as name,
       (select jsonb_agg(jsonb_build_object(
                 'name', quote_ident(a.attname),
                 'member', a.attname,
                 'type', format_type(a.atttypid, a.atttypmod),
                 'size', format(case when a.atttypid in ('text'::regtype, 'bytea'::regtype)
                                     then 'octet_length(%I)' else 'pg_column_size(%I)' end, a.attname))
               order by a.attnum)
          from pg_attribute a
         where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns,
       (select jsonb_agg(jsonb_build_object('name', quote_ident(a.attname), 'type', format_type(a.atttypid, null))
                         order by k.place)
          from pg_index i
         cross join lateral unnest(i.indkey::smallint[]) with ordinality k (attnum, place)
          join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
         where i.indrelid = c.oid and i.indisprimary) as key,
       quote_ident(d.attname) as identity,
       pg_get_serial_sequence(format('%I.%I', n.nspname, c.relname), d.attname) as sequence,
       (select coalesce(jsonb_agg(format('%I.%I', fn.nspname, fc.relname)), '[]')
          from pg_constraint f
          join pg_class fc on fc.oid = f.confrelid
          join pg_namespace fn on fn.oid = fc.relnamespace
         where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid) as refers_to
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  left join pg_attribute d on d.attrelid = c.oid and d.attidentity <> ''
 where n.nspname in ('audit', 'hooks', 'links', 'notices', 'ops') and c.relkind = 'r'
 order by n.nspname, c.relname
