import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { backends, onPostgres, embedded, type Backend } from '../helpers/backends.ts'
import { FREE, runCli } from '../helpers/cli.ts'
import { inLongRun, ROOT, type Env } from '../helpers/program.ts'

const files = readdirSync(join(ROOT, 'sql/migrations')).toSorted()
const expected = files.map((file) => ({
  number: Number(file.slice(0, 4)),
  name: file.replace(/\.sql$/, ''),
  sha256: createHash('sha256').update(textOf(file)).digest('hex'),
}))
const first = expected[0]?.name ?? ''

/** What is recorded, and each empty table that PostgreSQL believes to be empty for ever. */
const STATE = `select number, name, sha256 from gatehouse.migrations where applied_at is not null
  union all
  select 0, oid::regclass::text, 'never analyzed' from pg_class
   where relkind = 'r' and relnamespace::regnamespace::text in ('audit', 'hooks', 'links', 'notices', 'ops') and reltuples = 0
  order by number`

const FAILS =
  'a migration that fails leaves nothing behind, then each is applied once and recorded'
await onPostgres(t, FAILS, failsThenApplies)
await inLongRun(t, `${FAILS}, embedded`, (t: Test) => failsThenApplies(t, embedded))

async function failsThenApplies(t: Test, backend: Backend) {
  const env = await backend.emptyEnv(t)
  // Fails in the middle of the first migration, after its schema and some tables were made.
  await backend.query(
    env,
    `create function refuse() returns event_trigger language plpgsql as $$
       begin
         if to_regclass('hooks.settings') is not null then raise 'no room for settings'; end if;
       end $$;
       create event trigger refuse on ddl_command_end execute function refuse()`,
  )
  const failed = await runCli(['migrate'], { env })
  t.match(failed, { code: 1, stdout: '' })
  t.match(
    failed.stderr,
    /^gatehouse: Migration 0001_hooks failed and changed nothing \(.*no room for settings\): correct that and try again\n$/,
  )
  await backend.query(env, 'drop event trigger refuse')

  // It would refuse a schema without its record, and skip what is recorded.
  const applied = await runCli(['migrate'], { env })
  t.match(applied, { code: 0, stderr: '' })
  t.same(
    lines(applied.stdout),
    expected.map(({ name }) => `applied ${name}`),
  )
  const again = await runCli(['migrate'], { env })
  t.match(again, { code: 0, stdout: 'nothing to apply\n', stderr: '' })
  t.same(await backend.query(env, STATE), expected)
}

await onPostgres(t, 'an administrator has created pg_trgm', async (t, backend) => {
  const env = await backend.emptyEnv(t)
  const elsewhere = 'create schema extensions; create extension pg_trgm with schema extensions'
  for (const text of elsewhere.split('; ')) await backend.query(env, text)
  t.match(await runCli(['migrate'], { env }), { code: 0, stderr: '' })
  const [extension] = await backend.query(
    env,
    `select extnamespace::regnamespace::text as schema from pg_extension where extname = 'pg_trgm'`,
  )
  t.same(extension, { schema: 'extensions' })
})

t.test('several processes migrate one empty database at once', async (t) => {
  const [, backend] = backends
  const env = await backend.emptyEnv(t)
  const results = await Promise.all([1, 2].map(() => runCli(['migrate'], { env })))
  for (const { code, stderr } of results) t.match({ code, stderr }, { code: 0, stderr: '' })
  const applied = results.flatMap(({ stdout }) =>
    lines(stdout).filter((line) => line !== 'nothing to apply'),
  )
  t.same(
    applied.toSorted(),
    expected.map(({ name }) => `applied ${name}`),
    'each one by one of them',
  )
  t.same(await backend.query(env, STATE), expected)
})

const second = expected[1]?.name ?? ''
/** What such a database has recorded as the text of 0001_hooks. */
const PRE_RELEASE = '47c1fe97c888fc43c8e49ad6707392bc20188c300c7fcdf6344e840d6e6e1c44'
/** A database that must not be used, made from a migrated one, and what is said of it in one line. */
const DAMAGES: readonly { what: string; sql: string; line: string }[] = [
  {
    what: 'a migration that changed since',
    sql: `update gatehouse.migrations set sha256 = 'other' where number = 1`,
    line:
      `Migration ${first} was applied with another text: ` +
      'start the release that applied it, or restore its file',
  },
  {
    what: 'a database ahead of the program',
    sql: `insert into gatehouse.migrations (number, name, sha256) values (9999, '9999_future', '')`,
    line:
      'The database has migration 9999_future, which this program does not know: it is newer; ' +
      'start the newer program, or restore the backup from before the upgrade',
  },
  {
    what: 'records with a gap',
    sql: 'delete from gatehouse.migrations where number = 2',
    line:
      `Migration ${second} is not recorded, but a later one is: ` +
      'the records are not whole; restore the whole backup',
  },
  {
    what: 'tables without their record',
    sql: 'delete from gatehouse.migrations where number = 5',
    line:
      'Migration 0005_notices is not recorded, but schema notices is there: it was applied by hand or ' +
      'restored in part; restore the whole backup, or use an empty database',
  },
  {
    what: 'tables without any record',
    sql: 'drop schema gatehouse cascade',
    line:
      `Migration ${first} is not recorded, but schema hooks is there: it was applied by hand or restored ` +
      'in part; restore the whole backup, or use an empty database (and 4 more: gatehouse check)',
  },
  {
    what: 'a record without its schema',
    sql: 'drop schema links cascade',
    line:
      `Migration ${second} is recorded, but schema links is not there: ` +
      'the database was restored in part; restore the whole backup',
  },
  {
    what: 'a database from before the first release',
    sql: `update gatehouse.migrations set sha256 = '${PRE_RELEASE}' where number = 1;
          insert into gatehouse.migrations (number, name, sha256) values (20, '0020_ops_retention', '')`,
    line:
      'The database was made before the first release of Gatehouse, whose tables were others: ' +
      `expected ${first} with checksum ${expected[0]?.sha256.slice(0, 8)}, ` +
      'got 47c1fe97; use an empty database',
  },
]

t.test('a database that does not fit is refused by every command in one line', async (t) => {
  const [embedded, postgres] = backends
  const every = [['serve', 'hooks'], ['migrate'], ['provider', 'list']]
  for (const [at, { what, sql, line }] of DAMAGES.entries()) {
    const env = await postgres.env(t)
    await postgres.query(env, sql)
    await refused(t, env, line, what, at === 0 ? every : [['migrate']])
  }
  const lost = DAMAGES.find(({ what }) => what === 'a record without its schema')
  if (lost === undefined) throw new Error('there is no such damage')
  const env = await embedded.env(t)
  await embedded.query(env, lost.sql)
  await refused(t, env, lost.line, `${lost.what}, embedded`, [['serve', 'hooks']])
})

t.test('check finds a table or a column that is missing', async (t) => {
  const [, backend] = backends
  for (const [sql, missing] of [
    ['drop table hooks.endpoints', 'relation "hooks.endpoints" does not exist'],
    ['alter table hooks.providers drop column last_secret', 'last_secret"? does not exist'],
  ] as const) {
    const env = await backend.env(t)
    await backend.query(env, sql)
    const { code, stdout } = await runCli(['check'], { env: { ...FREE, ...env } })
    t.equal(code, 0, 'the rest stays at work')
    t.match(stdout, new RegExp(`^warn  migrations: .*${missing} \\(needed by \\d+ queries, `, 'm'))
  }
})

/** No command uses such a database: each says why in one line and fails, and check has it as a line too. */
async function refused(
  t: Test,
  given: Env,
  line: string,
  what: string,
  commands: readonly (readonly string[])[],
) {
  const env = { ...FREE, ...given }
  for (const command of commands) {
    const name = `${what}: ${command.join(' ')}`
    const refusal = { code: 1, stdout: '', stderr: `gatehouse: ${line}\n` }
    t.same(await runCli(command, { env }), refusal, name)
  }
  const { code, stdout } = await runCli(['check'], { env })
  t.equal(code, 1, `${what}: check`)
  const [found] = /^FAIL  migrations: .*$/m.exec(stdout) ?? []
  t.equal(found, `FAIL  migrations: ${line.replace(/ \(and .*/, '')}`, `${what}: check`)
}

function lines(text: string) {
  return text.split('\n').filter((line) => line !== '')
}

function textOf(migration: string) {
  return readFileSync(join(ROOT, 'sql/migrations', migration), 'utf8')
}
