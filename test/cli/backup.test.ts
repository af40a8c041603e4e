import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { t, type Test } from 'tap'
import { openClient } from '../../db/client.ts'
import { migrate } from '../../db/migrate.ts'
import { connectionTo, embedded, postgres } from '../helpers/backends.ts'
import {
  runOk,
  refuseCommands,
  runCli,
  runCliProcess,
  type RefusedCommand,
} from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import { contentsOf, seedStatements } from '../helpers/transfer.ts'
import { until } from '../helpers/until.ts'

const HEAD = 64 * 1024

/** A payload of many pieces, and one that is just too large for its row. */
const LARGE = `
insert into hooks.events (provider, trust, external_id, headers, payload, received_at)
select 'generic:odd', 2, 'large-' || i, '[]', decode(repeat(md5(i::text), 131072 / (1 + 2 * (i - 1))), 'hex'), now()
  from generate_series(1, 2) i`

// secret-key.test.ts moves one from the embedded engine to a server.
t.test('a backup moves a database from a server to the embedded engine', async (t) => {
  const folder = await temporaryFolder(t, 'backups')
  const first = join(folder, 'first')
  const source = await postgres.env(t)
  await postgres.query(source, seedStatements({ events: 1_000, links: 60, sessions: 6 }))
  await postgres.query(source, LARGE)
  const made = await runCli(`backup ${first} --json`, { env: source })
  t.match(made, { code: 0, stderr: /: \d+ bytes\n$/ })
  const { bytes, tables } = JSON.parse(made.stdout)
  const { size, mode } = statSync(first)
  t.same([size, mode & 0o777], [bytes, 0o600], 'for its owner alone')
  for (const { name, rows } of tables) t.ok(rows > 0, `${name} has rows`)
  t.match(
    tables.find(({ name }: { name: string }) => name === 'hooks.events'),
    { rows: 1_004, sha256: /^[0-9a-f]{64}$/, next_id: 1_006 },
  )
  const header = JSON.parse(readFileSync(first, 'utf8').slice(0, HEAD).split('\n')[1] ?? '')
  t.match(header, { version: /^\d+\./, made_at: /Z$/, tables, bytes: bytes - HEAD })

  const other = await embedded.emptyEnv(t)
  t.match(await runCli(`restore ${first}`, { env: other }), {
    code: 0,
    stdout: /^hooks\.events +1004 /m,
    stderr: " restored and verified\nsecrets of 1 target of notices need the key of the backup's ",
  })
  t.same(readdirSync(folder), ['first'], 'nothing else is left')
  await runOk(`backup ${join(folder, 'again')}`, { env: other })
  const [given, again] = ['first', 'again'].map((name) => readFileSync(join(folder, name)))
  t.ok(again?.subarray(HEAD).equals(given?.subarray(HEAD) ?? Buffer.of()), 'every row is the same')
})

/** A database as an older program left it. */
async function olderDatabase() {
  const env = await postgres.emptyEnv(t)
  const db = openClient({ target: env['DATABASE_URL'] ?? '', deadlineMs: 5_000, connections: 1 })
  await migrate(db, 1)
  await db.close()
  return env
}

const LEVEL = 'select max(number)::int as level from gatehouse.migrations'

t.test('a backup of an older database is restored and brought up to date', async (t) => {
  const old = await olderDatabase()
  await postgres.query(old, LARGE)
  const file = join(await temporaryFolder(t, 'backups'), 'old')
  await runOk(`backup ${file}`, { env: old })
  t.same(await postgres.query(old, LEVEL), [{ level: 1 }], 'a backup migrates nothing')

  const env = await postgres.emptyEnv(t)
  const restored = await runCli(`restore ${file}`, { env })
  t.match(restored, { code: 0, stderr: 'applied 0002_links\n' })
  const events = 'select id, payload, external_id from hooks.events order by id'
  t.same(await postgres.query(env, events), await postgres.query(old, events))
  const newer = 'the database was made by a newer version than the backup (migration '
  await refused(t, await postgres.env(t), newer, file)
})

t.test('a backup that has no space for its last bytes is none', async (t) => {
  const env = await postgres.env(t)
  const folder = await temporaryFolder(t, 'backups')
  await runOk(['backup', join(folder, 'whole')], { env })
  const { size } = statSync(join(folder, 'whole'))
  // Files may have one byte less: the last write takes a part of what it is given.
  const program = ['prlimit', `--fsize=${size - 1}`, process.execPath, 'server.ts']
  const short = await runCliProcess(['backup', join(folder, 'short')], { env, program })
  t.match(short, { code: 1, stdout: '', stderr: /^gatehouse: [^\n]*EFBIG[^\n]*\n$/ })
  t.same(readdirSync(folder), ['whole'])
})

t.test('of two backups to one file the one that began last makes it', async (t) => {
  const env = await postgres.env(t)
  await postgres.query(env, LARGE)
  const file = join(await temporaryFolder(t, 'backups'), 'file')
  const sql = connectionTo(t, env)
  const part = () => statSync(`${file}.part`, { throwIfNoEntry: false })?.ino
  const begin = async () => {
    const before = part()
    const ended = runCli(`backup ${file}`, { env })
    await until(() => part() !== undefined && part() !== before, 'rows to be written')
    return { ended }
  }
  const [first, last] = await sql.begin(async (tx) => {
    // No backup comes to its end before both have begun.
    await tx`lock table hooks.events in access exclusive mode`
    return [await begin(), await begin()] as const
  })
  t.match(await first.ended, { code: 1 })
  t.match(await last.ended, { code: 0 })
  t.same(readdirSync(dirname(file)), ['file'])
  const restored = await runCli(`restore ${file}`, { env: await postgres.emptyEnv(t) })
  t.match(restored, { code: 0, stdout: /^hooks\.events +2 /m })
})

t.test('a file that is there is kept, one that is replaced is so as a whole', async (t) => {
  const env = await postgres.env(t)
  const file = join(await temporaryFolder(t, 'backups'), 'file')
  writeFileSync(file, 'precious')
  const none = { DATABASE_URL: '', GATEHOUSE_DATA_DIR: `${file}-none` }
  const nothing = `there is no database in ${file}-none: nothing to back up`
  await refuseCommands(t, { env, state: async () => readFileSync(file, 'utf8') }, [
    [`backup ${file}`, 1, `${file} is there already; --force replaces it`],
    [{ args: `backup ${file} --force`, env: none }, 1, nothing],
  ])
  await runOk(`backup ${file} --force`, { env })
  t.match(readFileSync(file, 'utf8').slice(0, 18), 'gatehouse backup 1')
})

// What a restore refuses.

const source = await postgres.env(t)
await runCli('user add ann@example.com', { env: source })
/** The last migration of a backup, with the beginning of its checksum. */
const OPS = /"0003_ops","sha256":"..../
const folder = await temporaryFolder(t, 'backups')
const whole = join(folder, 'whole')
await runCli(`backup ${whole}`, { env: source })
const bytes = readFileSync(whole)

/** A row for a file with this content, and a part of the line that refuses it. */
function refusedFile(content: Buffer, part: string): RefusedCommand {
  const name = createHash('sha256').update(content).digest('hex')
  const file = join(folder, name)
  writeFileSync(file, content)
  return [['restore', file], 1, new RegExp(RegExp.escape(part))]
}

/** The backup with other words in its second line, and a checksum that goes with them. */
function resealed(change: (text: string) => string, format = 'gatehouse backup 1') {
  const end = bytes.indexOf('\n') + 1
  const line = change(bytes.toString('utf8', end, HEAD).trimEnd())
  const rest = `${line.padEnd(HEAD - end - 1)}\n`
  const sum = createHash('sha256').update(rest).digest('hex')
  return Buffer.concat([Buffer.from(`${format} ${sum}\n${rest}`), bytes.subarray(HEAD)])
}

t.test('a file that is not as it was made is refused before anything is opened', async (t) => {
  const altered = (at: number) => {
    const copy = Buffer.from(bytes)
    copy[at] = (copy[at] ?? 0) ^ 1
    return copy
  }
  const newer = '"0003_new","sha256":"0000'
  const commands = '"0003_\\u001b[2J","sha256":"0000'
  const title = '$&\\u001b]0;title\\u0007\\n\\u009b2J\\u202e'
  await refuseCommands(t, undefined, [
    refusedFile(Buffer.alloc(0), 'is no backup of Gatehouse'),
    refusedFile(Buffer.from('hello\n'.repeat(20_000)), 'is no backup of Gatehouse'),
    refusedFile(bytes.subarray(0, 500), 'is damaged: it ends too early, at 500 bytes'),
    refusedFile(bytes.subarray(0, -1), 'is damaged: it ends too early'),
    refusedFile(Buffer.concat([bytes, Buffer.from('x')]), 'is damaged: its rows have changed'),
    refusedFile(altered(bytes.indexOf('"rows":') + 7), 'its first lines have changed'),
    refusedFile(altered(HEAD + 100), 'is damaged: its rows have changed'),
    refusedFile(
      resealed((text) => text, 'gatehouse backup 2'),
      'has a format that this program does not know',
    ),
    refusedFile(
      resealed((text) => text.replace(OPS, newer)),
      ' with the migration 0003_new, which this program does not have',
    ),
    refusedFile(
      resealed((text) => text.replace(/"version":"/, title).replace(OPS, commands)),
      'was made by version \\u001b]0;title\\u0007 \\u009b2J\\u202e',
    ),
    refusedFile(
      resealed((text) => text.replace(/"made_at":"/, '$&\\ngatehouse: ')),
      'its first lines do not say what is in it',
    ),
    [['restore', join(folder, 'none')], 1, /ENOENT/],
  ])
})

t.test('a file that says what is not so, or does harm, leaves nothing', async (t) => {
  const env = await postgres.emptyEnv(t)
  const users = async () => {
    const is = `select to_regclass('links.users') is not null as is`
    const [there] = await postgres.query(env, is)
    // No user as long as there is no table of them.
    if (there?.['is'] !== true) return [{ n: 0 }]
    return postgres.query(env, 'select count(*)::int as n from links.users')
  }
  const first = bytes.toString('utf8', 0, HEAD)
  const [, sum = ''] = /"name":"links\.users","rows":1,"sha256":"([0-9a-f]{64})"/.exec(first) ?? []
  // A row has 128 MiB at most.
  const rows = zstdCompressSync(Buffer.alloc(129 * 1024 * 1024, ' '))
  const bomb = resealed((text) => {
    const sha256 = createHash('sha256').update(rows).digest('hex')
    return JSON.stringify({ ...JSON.parse(text), bytes: rows.length, sha256 })
  }).subarray(0, HEAD)
  const twice = resealed((text) => {
    const { tables, ...more } = JSON.parse(text)
    return JSON.stringify({ ...more, tables: [...tables.slice(0, -1), tables[0]] })
  })
  await refuseCommands(t, { env, state: users }, [
    refusedFile(
      resealed((text) => text.replace(sum, '0'.repeat(64))),
      'links.users did not arrive as it was (1 of 1 rows); nothing was changed',
    ),
    refusedFile(Buffer.concat([bomb, rows]), 'a row that is too long'),
    refusedFile(twice, 'the two databases do not have the same tables'),
  ])
  await runOk(`restore ${whole}`, { env })
  t.same(await users(), [{ n: 1 }])
})

/** A backup is refused by this database, and leaves it as it was. */
async function refused(t: Test, env: Env, line: string, file = whole) {
  await refuseCommands(t, { env, state: () => contentsOf(postgres, env) }, [
    [`restore ${file}`, 1, line],
  ])
}

t.test('only an empty database is restored into, and none of another version', async (t) => {
  const env = await postgres.env(t)
  await runCli('user add bob@example.com', { env })
  const full = 'a backup is restored into an empty database, but'
  await refused(t, env, `${full} audit.changes holds rows already: name an empty database in D`)
  t.match(await runCli(`restore ${whole}`, { env: source }), {
    code: 0,
    stderr: 'is what the database has already\n',
  })
  await postgres.query(env, 'delete from audit.changes')
  await refused(t, env, `${full} links.users holds rows already`)
  // As the first start leaves it.
  const started = await runCli(`restore ${whole}`, { env: await postgres.env(t) })
  t.match(started, { code: 0, stderr: ' restored and verified\n' })

  const newer = await postgres.env(t)
  await postgres.query(newer, `insert into gatehouse.migrations values (9999, '9999_future', '')`)
  await refused(t, newer, 'The database has migration 9999_future, ')

  const older = await olderDatabase()
  await postgres.query(older, `insert into hooks.endpoints values ('a', sha256('a'), true)`)
  await refused(t, older, `${full} hooks.endpoints holds rows already: `)
  t.same(await postgres.query(older, LEVEL), [{ level: 1 }], 'not migrated either')
})
