import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import type { Env } from '../helpers/program.ts'
import { startServer } from '../helpers/server.ts'
import { contentsOf } from '../helpers/transfer-check.ts'

const [embedded] = backends
const HEAD = 64 * 1024

const source = await embedded.env(t)
await runCli(['user', 'add', 'ann@example.com'], { env: source })
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
      resealed((text) =>
        text.replace('"0009_ops"', '"0009_new"').replace(/"sha256":"ccb8/, '"sha256":"0000'),
      ),
      /was made by version [\d.]+ with the migration 0009_new, which this program does not have/,
    ],
    [
      'words that would command a terminal',
      resealed((text) =>
        text
          .replace(/"version":"/, '$&\\u001b]0;title\\u0007\\n\\u009b2J\\u202e')
          .replace('"0009_ops"', '"0009_\\u001b[2J"')
          .replace(/"sha256":"ccb8/, '"sha256":"0000'),
      ),
      /was made by version \\u001b\]0;title\\u0007 \\u009b2J\\u202e[\d.]+ with the migration 0009_\\u001b\[2J,/,
    ],
    [
      'a time that is none',
      resealed((text) => text.replace(/"made_at":"/, '$&\\ngatehouse: ')),
      /its first lines do not say what is in it/,
    ],
  ]
  const target = join(folder, 'untouched')
  for (const [name, content, line] of files) {
    const file = join(folder, 'bad')
    writeFileSync(file, content)
    const result = await runCli(['restore', file], { env: { GATEHOUSE_DATA_DIR: target } })
    t.match(result, { code: 1, stdout: '', stderr: line }, name)
    t.notMatch(result.stderr, /[^\P{C}\n]/u, `${name}: nothing that a terminal obeys`)
    t.equal(result.stderr.trimEnd().split('\n').length, 1, `${name}: in one line`)
  }
  t.match(await runCli(['restore', join(folder, 'none')], { env: source }), {
    code: 1,
    stderr: /ENOENT/,
  })
  t.notOk(existsSync(target), 'no database was made')
})

t.test('rows that are not what the file says are undone', async (t) => {
  const env = await embedded.emptyEnv(t)
  const file = join(folder, 'liar')
  const [, users = ''] =
    /"name":"links\.users","rows":1,"sha256":"([0-9a-f]{64})"/.exec(
      bytes.toString('utf8', 0, HEAD),
    ) ?? []
  writeFileSync(
    file,
    resealed((text) => text.replace(users, '0'.repeat(64))),
  )
  const line =
    /^gatehouse: links\.users did not arrive as it was \(1 of 1 rows\); nothing was changed\n$/
  t.match(await runCli(['restore', file], { env }), { code: 1, stdout: '', stderr: line })
  t.match(await embedded.query(env, 'select count(*)::int as n from links.users'), [{ n: 0 }])
  t.match(await runCli(['restore', whole], { env }), { code: 0 }, 'the true one is taken then')
})

t.test('a file that somebody made to do harm', async (t) => {
  const env = await embedded.emptyEnv(t)
  const file = join(folder, 'hostile')
  const rows = zstdCompressSync(Buffer.alloc(200 * 1024 * 1024, ' '))
  const bomb = resealed((text) => {
    const sha256 = createHash('sha256').update(rows).digest('hex')
    return JSON.stringify({ ...JSON.parse(text), bytes: rows.length, sha256 })
  }).subarray(0, HEAD)
  const twice = resealed((text) => {
    const { tables, ...more } = JSON.parse(text)
    return JSON.stringify({ ...more, tables: [...tables.slice(0, -1), tables[0]] })
  })
  for (const [name, content, line] of [
    ['a row without an end', Buffer.concat([bomb, rows]), /a row that none is: it is too long/],
    ['a table twice, another never', twice, /the two databases do not have the same tables/],
  ] as const) {
    writeFileSync(file, content)
    t.match(await runCli(['restore', file], { env }), { code: 1, stdout: '', stderr: line }, name)
  }
  t.match(await runCli(['restore', whole], { env }), { code: 0 }, 'nothing was changed')
})

t.test('only an empty database is restored into', async (t) => {
  const env = await embedded.env(t)
  await runCli(['user', 'add', 'bob@example.com'], { env })
  const before = await contentsOf(embedded, env)
  await refused(
    t,
    env,
    /^gatehouse: a backup is restored into an empty database, but links\.users holds rows already: set GATEHOUSE_DATA_DIR .*\n$/,
  )
  t.same(await contentsOf(embedded, env), before)
  t.match(await runCli(['restore', whole], { env: source }), {
    code: 0,
    stderr: /is what the database has already\n$/,
  })
  await startServer(t, { services: ['links'], env })
  await refused(t, env, /^gatehouse: "restore" has the database to itself: stop the server, .*\n$/)
})

await eachBackend(
  t,
  'what was loaded from a dump in one transaction is no empty database',
  async (t: Test, backend) => {
    const dump = readFileSync(join(ROOT, 'test/fixtures/databases/first-issue.sql'), 'utf8')
    const old = await backend.emptyEnv(t)
    await backend.query(old, dump.replaceAll(/^\\.*$/gm, ''))
    await refused(t, old, /but hooks\.\w+ holds rows already/)

    const env = await backend.env(t)
    // As pg_restore --single-transaction leaves them: every row of one transaction.
    await backend.query(
      env,
      `update gatehouse.migrations set name = name; update hooks.providers set name = name;
       update hooks.settings set only_row = only_row; update ops.settings set only_row = only_row;
       insert into hooks.endpoints values ('a', sha256('a'), true)`,
    )
    const before = await contentsOf(backend, env)
    await refused(t, env, /holds rows already/)
    t.same(await contentsOf(backend, env), before)
  },
)

async function refused(t: Test, env: Env, line: RegExp): Promise<void> {
  t.match(await runCli(['restore', whole], { env }), { code: 1, stdout: '', stderr: line })
}

/** The backup with other words in its second line, and a checksum that goes with them. */
function resealed(change: (text: string) => string, format = 'gatehouse backup 1'): Buffer {
  const end = bytes.indexOf('\n') + 1
  const line = change(bytes.toString('utf8', end, HEAD).trimEnd())
  const rest = `${line.padEnd(HEAD - end - 1)}\n`
  const sum = createHash('sha256').update(rest).digest('hex')
  return Buffer.concat([Buffer.from(`${format} ${sum}\n${rest}`), bytes.subarray(HEAD)])
}
