import Type from 'typebox'
import type { Executor } from './client.ts'
import type { Query } from './queries.ts'
import { one } from './rows.ts'

/** Which of a list of objects (`KIND NAME`, one a line) the database has, in the same form. */
const FIND: Query = {
  name: 'findObjects',
  text: `select coalesce(string_agg(object, e'\\n'), '') as present
from (
  select object, split_part(object, ' ', 1) as kind, split_part(object, ' ', 2) as name
  from string_to_array($1, e'\\n') as list, unnest(list) as object
) as objects
where case kind
  when 'schema' then to_regnamespace(name) is not null
  when 'function' then to_regproc(name) is not null
  when 'column' then exists (
    select from pg_attribute
    where attrelid = to_regclass(split_part(name, '.', 1) || '.' || split_part(name, '.', 2))
      and attname = split_part(name, '.', 3) and not attisdropped
  )
  else to_regclass(name) is not null
end`,
  result: 'one',
  args: ['text'],
  row: Type.Object({ present: Type.String() }),
}

/** The queries of this file, for the test that compares every declaration with a server's. */
export const objectQueries: readonly Query[] = [FIND]

/** What a statement of a migration makes or takes away. */
const STATEMENT =
  /^(?<verb>create|drop)\s+(?:unique\s+)?(?<kind>schema|table|view|index|function)\s+(?:if\s+(?:not\s+)?exists\s+)?(?<name>[\w.]+)(?:\s+on\s+(?<owner>\w+)\.)?|^alter\s+table\s+(?<table>[\w.]+)|^\s+(?<change>add|drop)\s+column\s+(?<column>\w+)/gim

/** What a migration's text makes (`true`) and takes away, as `KIND NAME`. */
function changesOf(text: string): ReadonlyMap<string, boolean> {
  const changes = new Map<string, boolean>()
  let table = ''
  for (const { groups = {} } of text.matchAll(STATEMENT)) {
    const { verb, kind, name = '', owner, change, column } = groups
    if (groups['table'] !== undefined) table = groups['table']
    else if (change !== undefined) changes.set(`column ${table}.${column}`, change === 'add')
    // An index is made without its schema, which is its table's.
    else changes.set(`${kind} ${owner === undefined ? '' : `${owner}.`}${name}`, verb === 'create')
  }
  return changes
}

/** What the database would have of each migration, by the place of its text, when all were applied. */
export function objectsOf(texts: readonly string[]): readonly (readonly string[])[] {
  const all = texts.map(changesOf)
  return all.map((changes, at) =>
    [...changes]
      .filter(([object, made]) => made && !all.slice(at + 1).some((later) => later.has(object)))
      .map(([object]) => object),
  )
}

/** Those of the objects that the database has. */
export async function presentObjects(
  db: Executor,
  objects: readonly string[],
): Promise<ReadonlySet<string>> {
  const { present } = await one<{ present: string }>(db, FIND, [objects.join('\n')])
  return new Set(present.split('\n'))
}
