import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'

/** Whoever adds one of these has to teach it to db/transfer. */
const NOT_CARRIED = `
select c.relkind::text || ' ' || c.oid::regclass as what
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('hooks', 'links', 'ops') and c.relkind not in ('r', 'i', 'v', 'S')
union all
select 'table without a primary key ' || c.oid::regclass
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('hooks', 'links', 'ops') and c.relkind = 'r'
   and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)
union all
select 'sequence of no identity ' || c.oid::regclass
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('hooks', 'links', 'ops') and c.relkind = 'S'
   and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i')
union all
select 'second identity column of ' || attrelid::regclass from pg_attribute
 where attidentity <> '' group by attrelid having count(*) > 1
union all
select 'trigger ' || tgname from pg_trigger where not tgisinternal
union all
select 'schema ' || nspname from pg_namespace
 where nspname !~ '^pg_' and nspname not in ('information_schema', 'public', 'gatehouse', 'hooks', 'links', 'ops')`

await eachBackend(
  t,
  'the schema has nothing that a move would leave out',
  async (t: Test, backend) => {
    const env = await backend.env(t)
    t.same(await backend.query(env, NOT_CARRIED), [])
  },
)
