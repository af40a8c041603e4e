import { globSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import type { TSchema } from '../../kernel/schema.ts'
import { openDatabase } from '../../db/open.ts'
import type { DeclaredQuery } from '../../db/sql-file.ts'
import { createLog } from '../../kernel/log.ts'
import { onPostgres, embedded, type Backend } from '../helpers/backends.ts'
import { inLongRun, ROOT } from '../helpers/program.ts'
import { transcript } from '../helpers/secrets.ts'
import { allIn } from '../helpers/http.ts'

const OIDS: Readonly<Record<string, number>> = {
  bool: 16,
  bytea: 17,
  int8: 20,
  int2: 21,
  int4: 23,
  text: 25,
  timestamptz: 1184,
  jsonb: 3802,
  uuid: 2950,
  'uuid[]': 2951,
  float8: 701,
}

/** What the server may say of a column whose row schema says so. */
const COLUMN_TYPES: Readonly<Record<string, readonly string[]>> = {
  integer: ['int2', 'int4', 'int8'],
  number: ['float8'],
  boolean: ['bool'],
  string: ['text', 'uuid'],
  'date-time': ['timestamptz'],
  bytes: ['bytea'],
  record: ['jsonb'],
  object: ['jsonb'],
  array: ['jsonb'],
}

/** The parts of a schema that decide its column's type. */
type Shape = {
  type?: string
  format?: string
  const?: unknown
  enum?: readonly unknown[]
  anyOf?: readonly Shape[]
  patternProperties?: unknown
  properties?: Readonly<Record<string, Shape>>
}

/** Every query that a module below db/ exports, in a record or a list. */
const queries: readonly DeclaredQuery[] = (await Promise.all(queryModules())).flatMap((module) =>
  Object.values(module).flatMap((exported) =>
    typeof exported === 'object' && exported !== null
      ? Object.values(exported).filter(isQuery)
      : [],
  ),
)

/** Indexes of texts in another order than that of their bytes. */
const BY_LANGUAGE = `select i.indexrelid::regclass::text as name
  from pg_index i join pg_class c on c.oid = i.indexrelid
  where c.relnamespace::regnamespace::text in ('gatehouse', 'audit', 'hooks', 'links', 'notices', 'ops')
    and exists (select from unnest(i.indcollation) as rules where rules not in (0, '"C"'::regcollation))
  order by 1`

/** What db/transfer does not move: a schema with one of these needs a change there. */
const NOT_CARRIED = `
select c.relkind::text || ' ' || c.oid::regclass as what
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('audit', 'hooks', 'links', 'notices', 'ops') and c.relkind not in ('r', 'i', 'v', 'S')
union all
select 'table without a primary key ' || c.oid::regclass
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('audit', 'hooks', 'links', 'notices', 'ops') and c.relkind = 'r'
   and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)
union all
select 'sequence of no identity ' || c.oid::regclass
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('audit', 'hooks', 'links', 'notices', 'ops') and c.relkind = 'S'
   and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i')
union all
select 'second identity column of ' || attrelid::regclass from pg_attribute
 where attidentity <> '' group by attrelid having count(*) > 1
union all
select 'trigger ' || tgname from pg_trigger where not tgisinternal
union all
select 'schema ' || nspname from pg_namespace
 where nspname !~ '^pg_' and nspname not in ('information_schema', 'public', 'gatehouse', 'audit', 'hooks', 'links', 'notices', 'ops')`

const DECLARED = 'the database is as the program declares it'
await onPostgres(t, DECLARED, isAsDeclared)
await inLongRun(t, `${DECLARED}, embedded`, (t: Test) => isAsDeclared(t, embedded))

async function isAsDeclared(t: Test, backend: Backend) {
  const env = await backend.env(t)
  const log = createLog(
    (text) => transcript('log', text, 'sql'),
    () => new Date(),
  )
  const where = { url: env['DATABASE_URL'], dataDirectory: env['GATEHOUSE_DATA_DIR'] ?? '' }
  const { db, [Symbol.asyncDispose]: close } = await openDatabase(where, log)
  t.teardown(close)
  const ask = (text: string) => db.run({ name: 'ask', text }, [])

  await t.test('the server describes every query as it is declared', async (t) => {
    for (const query of queries) {
      const { types: args, columns } = await db.describe(query)
      const names = args.map((oid) => nameOf(oid))
      t.same(query.args, names, `arguments of ${query.name}`)
      if (query.row === undefined) {
        t.equal(query.result, 'exec', `${query.name} has no row, so it is :exec`)
        continue
      }
      const shape = shapeOf(query.row)
      const declared = Object.keys(shape.properties ?? {})
      t.same(
        columns.map(({ name }) => name).toSorted(),
        declared.toSorted(),
        `columns of ${query.name}`,
      )
      for (const { name, type } of columns) {
        const kind = kindOf(shape.properties?.[name])
        const types = COLUMN_TYPES[kind] ?? []
        t.ok(
          types.includes(nameOf(type)),
          `${query.name}.${name} is ${nameOf(type)}, declared ${kind}`,
        )
      }
    }
  })

  t.same(await ask(BY_LANGUAGE), [], 'no index depends on the rules of a language')
  t.same(await ask(NOT_CARRIED), [], 'the schema has nothing that a move would leave out')
}

t.test('a list is bounded by its own limit, or by what it counts', async (t) => {
  // Operators make providers and destinations, people share links and make tokens one by one, a batch answers row by row: these stay short.
  const bounded = [
    'saveDeliveries',
    'listBeginnings', // of the events on a page
    'listMatches', // the same
    'listStored', // of the events of a chunk
    'listProviders',
    'listProvidersWithActivity',
    'listEndpoints',
    'listEndpointKeys',
    'listStats',
    'listRejectionCounts',
    'groupRejections', // thirty kinds each, of known and of unknown providers
    'listTargets',
    'listDestinations',
    'listFailing', // some events for each destination
    'listRemovals',
    'lockDestinations',
    'lockToPlan',
    'planDeliveries', // a row for each destination
    'findWork',
    'listRecoveries', // operators name sources
    'listMissing', // of the ids that it is given
    'listRunningJobs', // a hundred at most
    'endReplayJobs',
    'cancelReplayJobs',
    'giveUpEvents',
    'listMigrations',
    'listTransferTables',
    'listOwners',
    'listShares',
    'listTokens',
    'lockAdmins',
  ]
  for (const { name, text, result } of queries) {
    if (result !== 'many') continue
    const limited = /\blimit \$\d+\s*$/.test(text)
    t.equal(
      limited,
      !bounded.includes(name),
      `${name} ${limited ? 'ends' : 'does not end'} in a limit`,
    )
  }
})

t.test('a query that may find nothing says when', async (t) => {
  for (const { name, text, result } of queries) {
    if (result !== 'optional') continue
    const comment = text.split('\n').filter((line) => line.startsWith('-- '))
    t.match(comment.join('\n'), /\b(empty|no row)\b/i, `${name} says when`)
  }
})

t.test(
  'no query is text put together or takes an argument that it does not declare',
  async (t) => {
    for (const { name, text, args } of queries) {
      const used = new Set(allIn(text, /\$(\d+)/g).map(Number))
      const declared = args.map((_, at) => at + 1)
      t.same(
        [...used].toSorted((a, b) => a - b),
        declared,
        `${name} uses each declared argument`,
      )
      const statements = text.replaceAll(/^--.*$/gm, '')
      t.notMatch(statements, /\$\{|;\s*\S/, `${name} is one statement`)
    }
  },
)

/** The modules below db/ but for the engine's worker, which runs on import. */
function queryModules() {
  const paths = globSync('db/**/*.ts', { cwd: ROOT }).filter((path) => !/worker/.test(path))
  return paths.map((path) => import(join(ROOT, path)))
}

function isQuery(value: unknown): value is DeclaredQuery {
  return value instanceof Object && 'text' in value && 'args' in value && 'result' in value
}

function nameOf(oid: number) {
  return Object.keys(OIDS).find((name) => OIDS[name] === oid) ?? `type ${oid}`
}

/** A schema as the JSON that it is. */
function shapeOf(schema: TSchema): Shape {
  const shape: Shape = JSON.parse(JSON.stringify(schema))
  return shape
}

/** The one kind of value that a schema allows beside null. */
function kindOf(shape: Shape | undefined): string {
  if (shape === undefined) return 'nothing'
  if (shape.anyOf !== undefined) {
    const kinds = new Set(shape.anyOf.map(kindOf))
    kinds.delete('null')
    return [...kinds].join(' or ')
  }
  if (shape.patternProperties !== undefined) return 'record'
  if (shape.type === 'string' && ['date-time', 'bytes'].includes(shape.format ?? '')) {
    return shape.format ?? ''
  }
  return shape.type ?? typeof (shape.const ?? shape.enum?.[0])
}
