import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import postgresClient from 'postgres'
import { t } from 'tap'
import type { Test } from 'tap'
import { openClient } from '../../db/client.ts'
import { migrate } from '../../db/migrate.ts'
import { backends } from '../helpers/backends.ts'
import { refuseCommands, runCli, runCliProcess } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { exitOf, spawnProgram } from '../helpers/program.ts'
import type { Env } from '../helpers/program.ts'
import { contentsOf, seedStatements } from '../helpers/transfer.ts'
import { until } from '../helpers/until.ts'

const [embedded, postgres] = backends
const HEAD = 64 * 1024

/** A payload of many pieces, and one that is just too large for its row. */
const LARGE = `
insert into hooks.events (provider, trust, external_id, headers, payload, received_at)
select 'generic:odd', 2, 'large-' || i, '[]', decode(repeat(md5(i::text), 131072 / (1 + 2 * (i - 1))), 'hex'), now()
  from generate_series(1, 2) i`

t.test('a backup moves a database from one engine to the other and back', async (t) => {
  const folder = await temporaryFolder(t, 'backups')
  const [first, second] = [join(folder, 'first'), join(folder, 'second')]
  const source = await postgres.env(t)
  await postgres.query(source, seedStatements({ events: 1_000, links: 60, sessions: 6 }))
  await postgres.query(source, LARGE)
  const wanted = await contentsOf(postgres, source)
  for (const { name, rows } of wanted) t.ok(Number(rows) > 0, `${name} has rows`)

  const made = await runCli(['backup', first, '--json'], { env: source })
  t.match(made, { code: 0, stderr: /: \d+ bytes\n$/ })
  const { bytes, tables } = JSON.parse(made.stdout)
  t.equal(bytes, statSync(first).size)
  t.equal(statSync(first).mode & 0o777, 0o600, 'for its owner alone')
  t.match(
    tables.find(({ name }: { name: string }) => name === 'hooks.events'),
    { rows: 1_004, sha256: /^[0-9a-f]{64}$/, next_id: 1_006 },
  )
  const header = JSON.parse(readFileSync(first, 'utf8').slice(0, HEAD).split('\n')[1] ?? '')
  t.match(header, { version: /^\d+\./, made_at: /Z$/, tables, bytes: bytes - HEAD })

  const other = await embedded.emptyEnv(t)
  t.match(await runCli(['restore', first], { env: other }), {
    code: 0,
    stdout: /^hooks\.events +1004 /m,
    stderr: / restored and verified\n$/,
  })
  t.match(await runCli(['backup', second], { env: other }), { code: 0 })
  sameRows(t, first, second)

  const target = await postgres.emptyEnv(t)
  t.match(await runCli(['restore', second], { env: target }), { code: 0 })
  t.same(await contentsOf(postgres, target), wanted, 'every row of every table is the same')
  t.match(await runCli(['backup', second, '--force'], { env: target }), { code: 0 })
  sameRows(t, first, second)
  t.same(readdirSync(folder).toSorted(), ['first', 'second'], 'nothing else is left')
})

/** Two backups of the same rows: they differ in the time, and in how the rows were compressed. */
function sameRows(t: Test, one: string, two: string): void {
  const files = [readFileSync(one), readFileSync(two)]
  const [rows, others] = files.map((file) => zstdDecompressSync(file.subarray(HEAD)))
  t.ok(rows?.equals(others ?? Buffer.alloc(0)), 'the same bytes after the first lines')
  const [head, other] = files.map((file) =>
    JSON.parse(file.toString('utf8', file.indexOf('\n'), HEAD)),
  )
  const own = { made_at: '', bytes: 0, sha256: '' }
  t.same({ ...other, ...own }, { ...head, ...own })
}

t.test('a backup of an older database is restored and brought up to date', async (t) => {
  const old = await postgres.emptyEnv(t)
  const db = openClient({ target: old['DATABASE_URL'] ?? '', deadlineMs: 5_000, connections: 1 })
  await migrate(db, 1)
  await db.close()
  await postgres.query(old, LARGE)
  const file = join(await temporaryFolder(t, 'backups'), 'old')
  t.match(await runCli(['backup', file], { env: old }), { code: 0 })
  const level = 'select max(number)::int as level from gatehouse.migrations'
  t.same(await postgres.query(old, level), [{ level: 1 }], 'a backup migrates nothing')

  const env = await postgres.emptyEnv(t)
  const restored = await runCli(['restore', file], { env })
  t.match(restored, { code: 0, stderr: /^applied 0002_links\n/ })
  const events = 'select id, payload, external_id from hooks.events order by id'
  t.same(await postgres.query(env, events), await postgres.query(old, events))
  const newer = await postgres.env(t)
  await refuseCommands(t, { env: newer, state: () => contentsOf(postgres, newer) }, [
    [
      ['restore', file],
      1,
      /^gatehouse: the database was made by a newer version than the backup .*new folder; nothing was changed$/,
    ],
  ])
})

t.test('a backup that has no space for its last bytes is none', async (t) => {
  const env = await postgres.env(t)
  const folder = await temporaryFolder(t, 'backups')
  t.match(await runCli(['backup', join(folder, 'whole')], { env }), { code: 0 })
  const { size } = statSync(join(folder, 'whole'))
  // Files may have one byte less: the last write takes a part of what it is given.
  const program = ['prlimit', `--fsize=${size - 1}`, process.execPath, 'server.ts']
  const short = await runCliProcess(['backup', join(folder, 'short')], { env, program })
  t.match(short, { code: 1, stdout: '', stderr: /^gatehouse: [^\n]*EFBIG[^\n]*\n$/ })
  t.same(readdirSync(folder), ['whole'])
})

t.test('of two backups to one file the one that began last makes it', async (t) => {
  const env = await postgres.env(t)
  await postgres.query(env, seedStatements({ events: 6_000, links: 100, sessions: 1 }))
  const file = join(await temporaryFolder(t, 'backups'), 'file')
  const sql = postgresClient(env['DATABASE_URL'] ?? '', { max: 1 })
  t.teardown(() => sql.end())
  const [first, last] = await sql.begin(async (tx) => {
    // No backup comes to its end before it is stopped.
    await tx`lock table hooks.events in access exclusive mode`
    return [await begun(env, file), await begun(env, file)] as const
  })
  first.child.kill('SIGCONT')
  t.match(await first.ended, { code: 1 })
  t.same(readdirSync(dirname(file)), ['file.part'], 'what the other one writes is left to it')
  last.child.kill('SIGCONT')
  t.match(await last.ended, { code: 0 })
  t.same(readdirSync(dirname(file)), ['file'])
  const restored = await runCli(['restore', file], { env: await postgres.emptyEnv(t) })
  t.match(restored, { code: 0, stdout: /^hooks\.events +6002 /m })
})

/** Starts a backup and stops its process (SIGSTOP) once it has begun to write. */
async function begun(env: Env, file: string) {
  const part = (): number | undefined => statSync(`${file}.part`, { throwIfNoEntry: false })?.ino
  const before = part()
  const child = spawnProgram(['backup', file], env)
  const ended = exitOf(child)
  await until(() => part() !== undefined && part() !== before, 'rows to be written', 30_000)
  child.kill('SIGSTOP')
  return { child, ended }
}

t.test('a file that is there is kept, one that is replaced is so as a whole', async (t) => {
  const env = await postgres.env(t)
  const file = join(await temporaryFolder(t, 'backups'), 'file')
  writeFileSync(file, 'precious')
  await refuseCommands(t, { env, state: async () => readFileSync(file, 'utf8') }, [
    [['backup', file], 1, `${file} is there already; --force replaces it`],
    [
      {
        args: ['backup', file, '--force'],
        env: { DATABASE_URL: '', GATEHOUSE_DATA_DIR: `${file}-none` },
      },
      1,
      /^gatehouse: there is no database in .*: nothing to back up$/,
    ],
  ])
  t.match(await runCli(['backup', file, '--force'], { env }), { code: 0 })
  t.match(readFileSync(file, 'utf8').slice(0, 18), 'gatehouse backup 1')
  await refuseCommands(t, undefined, [
    [['backup'], 2, 'Missing FILE'],
    [['backup', 'a', 'b'], 2, 'Too many arguments'],
    [['restore'], 2, 'Missing FILE'],
    [['restore', 'a', 'b'], 2, 'Too many arguments'],
    [['restore', 'a', '--force'], 2, '"restore" takes no --force'],
  ])
})
