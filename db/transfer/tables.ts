import Type, { type Static } from 'typebox'
import type { Executor } from '../client.ts'
import type { Query } from '../sql-file.ts'
import { many, nullable } from '../rows.ts'

/** A table whose rows are carried from one database to another. All names are quoted for SQL. */
const Table = Type.Object({
  name: Type.String(),
  /** Without those that PostgreSQL makes of others; `member` is the name as it is, in JSON. */
  columns: Type.Array(
    Type.Object({
      name: Type.String(),
      member: Type.String(),
      type: Type.String(),
      size: Type.String(),
    }),
  ),
  /** The primary key as an order that is the same on every server, whatever its locale. */
  key: Type.Array(Type.String()),
  identity: nullable(Type.String()),
  sequence: nullable(Type.String()),
  /** The other tables that its foreign keys name. */
  refers_to: Type.Array(Type.String()),
})
export type Table = Static<typeof Table>

const LIST: Query = {
  name: 'listTransferTables',
  // octet_length() knows the size of a value without reading it; the rest is small.
  text: `
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
       (select coalesce(jsonb_agg(quote_ident(a.attname) || case when a.attcollation = 0 then '' else ' collate "C"' end
                                  order by k.place), '[]')
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
 where n.nspname in ('hooks', 'links', 'ops') and c.relkind = 'r'
 order by n.nspname, c.relname`,
  result: 'many',
  args: [],
  row: Table,
}

/** The queries of this file, for the test that compares every declaration with a server's. */
export const transferQueries: readonly Query[] = [LIST]

/** The tables of the three services, each after those that it refers to, else by name. */
export async function listTables(db: Executor): Promise<readonly Table[]> {
  const waiting = new Map((await many<Table>(db, LIST, [])).map((table) => [table.name, table]))
  const sorted: Table[] = []
  while (waiting.size > 0) {
    const next = [...waiting.values()].find(({ refers_to: others }) =>
      others.every((other) => !waiting.has(other)),
    )
    if (next === undefined) {
      throw new Error(
        `these tables refer to each other in a circle: ${[...waiting.keys()].join(', ')}`,
      )
    }
    waiting.delete(next.name)
    sorted.push(next)
  }
  return sorted
}

/** A statement made of a table's names; its rows have no schema of their own. */
export function statement(name: string, text: string, args: readonly string[] = []): Query {
  return { name, text, result: 'many', args, row: undefined }
}
