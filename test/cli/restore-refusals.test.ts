import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { t } from 'tap'
import type { Test } from 'tap'
import { openClient } from '../../db/client.ts'
import { migrate } from '../../db/migrate.ts'
import { backends } from '../helpers/backends.ts'
import { refuseCommands, runCli } from '../helpers/cli.ts'
import type { RefusedCommand } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { run, sharedPostgres } from '../helpers/postgres.ts'
import type { Env } from '../helpers/program.ts'
import { contentsOf } from '../helpers/transfer.ts'

const [, postgres] = backends
const HEAD = 64 * 1024

const source = await postgres.env(t)
await runCli(['user', 'add', 'ann@example.com'], { env: source })
/** The last migration of a backup, with the beginning of its checksum. */
const OPS = /"0003_ops","sha256":"..../
const folder = await temporaryFolder(t, 'backups')
const whole = join(folder, 'whole')
await runCli(['backup', whole], { env: source })
const bytes = readFileSync(whole)

t.test('a file that is not as it was made is refused before anything is opened', async (t) => {
  const altered = (at: number): Buffer => {
    const copy = Buffer.from(bytes)
    copy[at] = (copy[at] ?? 0) ^ 1
    return copy
  }
  const files: readonly (readonly [string, Buffer, RegExp])[] = [
    ['empty', Buffer.alloc(0), /is no backup of Gatehouse/],
    ['something else', Buffer.from('hello\n'.repeat(20_000)), /is no backup of Gatehouse/],
    [
      'cut in its first lines',
      bytes.subarray(0, 500),
      /is damaged: it ends too early, at 500 bytes/,
    ],
    ['without rows', bytes.subarray(0, HEAD), /is damaged: it ends too early/],
    ['cut', bytes.subarray(0, -1), /is damaged: it ends too early/],
    ['with more', Buffer.concat([bytes, Buffer.from('x')]), /is damaged: its rows have changed/],
    ['another count', altered(bytes.indexOf('"rows":') + 7), /its first lines have changed/],
    ['another space', altered(HEAD - 2), /its first lines have changed/],
    ['another row', altered(HEAD + 100), /is damaged: its rows have changed/],
    ['the last byte', altered(bytes.length - 1), /is damaged: its rows have changed/],
    [
      'a newer format',
      resealed((text) => text, 'gatehouse backup 2'),
      /has a format that this program does not know/,
    ],
    [
      'a newer program',
      resealed((text) => text.replace(OPS, '"0003_new","sha256":"0000')),
      /was made by version [\d.]+ with the migration 0003_new, which this program does not have/,
    ],
    [
      'words that would command a terminal',
      resealed((text) =>
        text
          .replace(/"version":"/, '$&\\u001b]0;title\\u0007\\n\\u009b2J\\u202e')
          .replace(OPS, '"0003_\\u001b[2J","sha256":"0000'),
      ),
      /was made by version \\u001b\]0;title\\u0007 \\u009b2J\\u202e[\d.]+ with the migration 0003_\\u001b\[2J,/,
    ],
    [
      'a time that is none',
      resealed((text) => text.replace(/"made_at":"/, '$&\\ngatehouse: ')),
      /its first lines do not say what is in it/,
    ],
  ]
  await refuseCommands(t, undefined, [
    ...files.map(([name, content, line]) => refusedFile(name, content, line)),
    [['restore', join(folder, 'none')], 1, /ENOENT/],
  ])
})

t.test('a file that says what is not so, or does harm, leaves nothing', async (t) => {
  const env = await postgres.emptyEnv(t)
  const [, users = ''] =
    /"name":"links\.users","rows":1,"sha256":"([0-9a-f]{64})"/.exec(
      bytes.toString('utf8', 0, HEAD),
    ) ?? []
  const rows = zstdCompressSync(Buffer.alloc(200 * 1024 * 1024, ' '))
  const bomb = resealed((text) => {
    const sha256 = createHash('sha256').update(rows).digest('hex')
    return JSON.stringify({ ...JSON.parse(text), bytes: rows.length, sha256 })
  }).subarray(0, HEAD)
  const twice = resealed((text) => {
    const { tables, ...more } = JSON.parse(text)
    return JSON.stringify({ ...more, tables: [...tables.slice(0, -1), tables[0]] })
  })
  await refuseCommands(t, { env, state: () => usersOf(env) }, [
    refusedFile(
      'another sum',
      resealed((text) => text.replace(users, '0'.repeat(64))),
      'links.users did not arrive as it was (1 of 1 rows); nothing was changed',
    ),
    refusedFile('a row without an end', Buffer.concat([bomb, rows]), /a row that is too long/),
    refusedFile(
      'a table twice, another never',
      twice,
      /the two databases do not have the same tables/,
    ),
  ])
  t.match(await runCli(['restore', whole], { env }), { code: 0 }, 'the true one is taken then')
  t.same(await usersOf(env), [{ n: 1 }])
})

/** How many users there are; none as long as there is no table of them. */
async function usersOf(env: Env): Promise<unknown> {
  const [there] = await postgres.query(env, `select to_regclass('links.users') is not null as is`)
  if (there?.['is'] !== true) return [{ n: 0 }]
  return postgres.query(env, 'select count(*)::int as n from links.users')
}

t.test('only an empty database is restored into', async (t) => {
  const env = await postgres.env(t)
  await runCli(['user', 'add', 'bob@example.com'], { env })
  await refused(
    t,
    env,
    /^gatehouse: a backup is restored into an empty database, but audit\.changes holds rows already: set GATEHOUSE_DATA_DIR .*$/,
  )
  t.match(await runCli(['restore', whole], { env: source }), {
    code: 0,
    stderr: /is what the database has already\n$/,
  })
  await postgres.query(env, 'delete from audit.changes')
  await refused(t, env, /links\.users holds rows already/)

  const changed = await postgres.env(t)
  t.match(await runCli(['provider', 'disable', 'chat'], { env: changed }), { code: 0 })
  await refused(t, changed, /audit\.changes holds rows already/)
  t.match(await runCli(['restore', whole], { env: await postgres.env(t) }), {
    code: 0,
    stderr: / restored and verified\n$/,
  })
})

t.test('a database of another version, or with another encoding', async (t) => {
  const newer = await postgres.env(t)
  await postgres.query(newer, `insert into gatehouse.migrations values (9999, '9999_future', '')`)
  await refused(t, newer, /^gatehouse: The database has migration 9999_future, .* newer/)

  const older = await postgres.emptyEnv(t)
  const db = openClient({ target: older['DATABASE_URL'] ?? '', deadlineMs: 5_000, connections: 1 })
  await migrate(db, 1)
  await db.close()
  await postgres.query(older, `insert into hooks.endpoints values ('a', sha256('a'), true)`)
  await refused(t, older, /but hooks\.endpoints holds rows already: /)
  const level = 'select max(number)::int as level from gatehouse.migrations'
  t.same(await postgres.query(older, level), [{ level: 1 }], 'not migrated either')

  const databases = await sharedPostgres()
  const latin = new URL(older['DATABASE_URL'] ?? '')
  latin.pathname = `${latin.pathname}_latin`
  const name = latin.pathname.slice(1)
  t.teardown(() => databases.dropDatabase(latin.href))
  const encoded = `create database ${name} template template0 encoding 'LATIN1' locale 'C'`
  await run(databases.url(), encoded)
  const line = 'the database has the encoding LATIN1; make one with UTF8'
  await refused(t, { DATABASE_URL: latin.href }, line)
})

/** The true backup is refused by this database. */
async function refused(t: Test, env: Env, line: RegExp | string): Promise<void> {
  const state = () => contentsOf(postgres, env)
  const tables = `select count(*)::int as n from pg_class c join pg_namespace n on n.oid = c.relnamespace
                   where n.nspname in ('audit', 'hooks', 'links', 'notices', 'ops')`
  const [made] = await postgres.query(env, tables)
  const isEmpty = made?.['n'] === 0
  const target = { env, state: isEmpty ? () => postgres.query(env, tables) : state }
  await refuseCommands(t, target, [[['restore', whole], 1, line]])
}

/** A row for a file with this content. */
function refusedFile(name: string, content: Buffer, line: RegExp | string): RefusedCommand {
  const file = join(folder, name.replaceAll(/\W+/g, '-'))
  writeFileSync(file, content)
  return [['restore', file], 1, line]
}

/** The backup with other words in its second line, and a checksum that goes with them. */
function resealed(change: (text: string) => string, format = 'gatehouse backup 1'): Buffer {
  const end = bytes.indexOf('\n') + 1
  const line = change(bytes.toString('utf8', end, HEAD).trimEnd())
  const rest = `${line.padEnd(HEAD - end - 1)}\n`
  const sum = createHash('sha256').update(rest).digest('hex')
  return Buffer.concat([Buffer.from(`${format} ${sum}\n${rest}`), bytes.subarray(HEAD)])
}
