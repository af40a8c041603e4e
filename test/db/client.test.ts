import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { t } from 'tap'
import { openClient, type ClientOptions, type Database, type Query } from '../../db/client.ts'
import { QueryError } from '../../db/errors.ts'
import { openEmbedded, type EmbeddedEngine } from '../../db/embedded/open.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { createMetrics } from '../../kernel/metrics.ts'
import { eachBackend, embedded, postgres, type Backend } from '../helpers/backends.ts'
import { type Owner, freePort } from '../helpers/owner.ts'
import { run, sharedPostgres } from '../helpers/postgres.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

/** For tests of the deadline. */
const SHORT_MS = 1_000
const ONE: Query = { name: 'one', text: 'select 1 as n' }
const file = t
/** A database of each kind for the tests of this file that may share one. */
const shared: { embedded?: Promise<EmbeddedEngine>; url?: Promise<string> } = {}

await eachBackend(t, 'values keep their kind in both directions', async (t, backend) => {
  const db = await open(t, backend)
  const row = {
    big: 9_007_199_254_740_991,
    small: 7,
    flag: true,
    word: 'ünï\n',
    bytes: Buffer.from([0, 255, 10]),
    doc: { a: [1, null, 'x'] },
    at: new Date('2026-02-28T23:59:59.123Z'),
    none: null,
  }
  const text =
    'select $1::int8 as big, $2::int4 as small, $3::bool as flag, $4::text as word,' +
    ' $5::bytea as bytes, $6::jsonb as doc, $7::timestamptz as at, $8::int8 as none'
  t.same(await db.run(query('kinds', text), Object.values(row)), [row])
  t.same(await db.run(query('sum', 'select count(*) as n, -3::int8 as m'), []), [{ n: 1, m: -3 }])
})

await eachBackend(t, 'bytes stay what they are, whatever they look like', async (t, backend) => {
  const db = await open(t, backend)
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  const kinds = [
    Buffer.alloc(0),
    Buffer.from('{"a":"\\\\ \\u0041 \\101 \\n"}\r\n'),
    ...['\\x41', '\\', '\\\\x41', '\ufeffé€😀', "it's $1", '\u0001\u007f'].map((x) =>
      Buffer.from(x),
    ),
    Buffer.from([0x61, 0, 0x62]),
    Buffer.from([0xc3]),
    Buffer.from([0xed, 0xa0, 0x80]),
    all,
    Buffer.concat([Buffer.from('text'), all]),
  ]
  const echo = query('echo', 'select $1::bytea as bytes, length($1::bytea) as size')
  for (const bytes of kinds) t.same(await db.run(echo, [bytes]), [{ bytes, size: bytes.length }])
})

t.test('a refused login is no refusal to end lost connections', async (t) => {
  const address = new URL((await sharedPostgres()).url())
  address.password = secret('wrong-password')
  const metrics = createMetrics()
  const options = { target: address.href, deadlineMs: 5_000, connections: 1, metrics }
  const db = openClient({ ...options, onNotEnded: (error) => t.fail(error.message) })
  t.teardown(() => db.close())
  await t.rejects(db.run(ONE, []), { code: '28P01' })
  // One for the statement, and two for attempts to end it: the first attempt has failed by then.
  await until(
    () => /reconnects_total ([3-9]|\d\d)/.test(metrics.render()),
    'a second attempt to end it',
  )
})

t.test('settings of a role, a database or its address change nothing that is read', async (t) => {
  const url = await freshUrl(t)
  const name = new URL(url).pathname.slice(1)
  for (const setting of [`bytea_output = 'escape'`, `DateStyle = 'German'`, 'jit = on']) {
    await run(url, `alter database ${name} set ${setting}`)
  }
  const address = new URL(url)
  address.search = '?bytea_output=escape&datestyle=German&client_encoding=latin1&work_mem=5MB'
  const db = openClient({ target: address.href, deadlineMs: 5_000, connections: 1 })
  t.teardown(() => db.close())
  const row = {
    bytes: Buffer.from([0, 92, 255]),
    word: 'ünï',
    at: new Date('2026-02-28T23:59:59.123Z'),
  }
  const text = 'select $1::bytea as bytes, $2::text as word, $3::timestamptz as at'
  t.same(await db.run(query('settings', text), Object.values(row)), [row])
  const memory = query('memory', `select current_setting('work_mem') as memory`)
  t.same(await db.run(memory, []), [{ memory: '5MB' }], 'what is not ours counts')
  const compiler = query('compiler', `select current_setting('jit') as jit`)
  t.same(await db.run(compiler, []), [{ jit: 'off' }], 'statements are not compiled')
})

await eachBackend(
  t,
  'a refused statement is a QueryError with its constraint',
  async (t, backend) => {
    const db = await open(t, backend)
    const table =
      'create table item (id int4 constraint item_key primary key, n int4 constraint positive check (n > 0))'
    await db.run(query('table', table), [])
    const insert = query('insert', 'insert into item values ($1, $2)')
    await db.run(insert, [1, 1])
    const twice = await failure(db.run(insert, [1, 1]))
    t.ok(twice instanceof QueryError)
    t.match(twice, { code: '23505', constraint: 'item_key', message: /^insert: / })
    t.match(await failure(db.run(insert, [2, 0])), { code: '23514', constraint: 'positive' })
    const missing = await failure(db.run(query('missing', 'select * from nowhere'), []))
    t.ok(missing instanceof QueryError)
    t.match(missing, { code: '42P01', constraint: undefined })

    const inside = db.transaction(async (tx) => {
      await tx.run(insert, [3, 3])
      await tx.run(insert, [3, 3])
    })
    t.match(await failure(inside), { name: 'QueryError', constraint: 'item_key' })
    const undone = db.transaction(async (tx) => {
      await tx.run(insert, [4, 4])
      throw new RangeError('mine')
    })
    t.match(await failure(undone), { name: 'RangeError', message: 'mine' })
    t.same(await db.run(query('all', 'select id from item'), []), [{ id: 1 }], 'both rolled back')
  },
)

await eachBackend(t, 'a second statement in a text is refused', async (t, backend) => {
  const db = await open(t, backend)
  for (const text of ['select 1; select 2', 'select 1; drop schema public cascade']) {
    const error = await failure(db.run(query('two', text), []))
    t.ok(error instanceof QueryError)
    t.match(error, { code: '42601' })
  }
  t.same(
    await db.run(query('schema', `select to_regnamespace('public') is not null as there`), []),
    [{ there: true }],
  )
})

t.test('an answered statement keeps neither its values nor its rows', async (t) => {
  const db = await open(t, postgres)
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (how?: { type: 'minor' }) => void
  const echo = query('echo', 'select $1::text as text')
  const text = 'x'.repeat(100_000)
  const round = async () => {
    for (let n = 0; n < 100; n++) await db.run(echo, [`${n}${text}`])
    // A text that survives two small collections is kept until the next full one.
    for (let n = 0; n < 2; n++) collect({ type: 'minor' })
  }
  await round()
  collect()
  const before = process.memoryUsage().heapUsed
  await round()
  const kept = process.memoryUsage().heapUsed - before
  t.ok(kept < 50 * text.length, `${kept} bytes are kept of 100 statements`)
})

t.test('a statement over the deadline counts as unavailable', async (t) => {
  const db = await open(t, postgres, SHORT_MS)
  const slow = query('slow', 'select pg_sleep(3)::text as slept')
  t.match(await failure(db.run(slow, [])), { name: 'Unavailable', message: /^slow: / })
  t.same(await until(() => db.run(ONE, []), 'the client to work again'), [{ n: 1 }])
})

/** Errors of a server that works, with their SQLSTATE. */
const BUSY = [
  ['57014', 'select count(*)::int4 as n from generate_series(1, 2000000000)'],
  ['55P03', `do $$ begin raise exception using errcode = '55P03'; end $$`],
  ['53100', `do $$ begin raise exception using errcode = '53100'; end $$`],
  ['53200', `do $$ begin raise exception using errcode = '53200'; end $$`],
  ['53300', `do $$ begin raise exception using errcode = '53300'; end $$`],
] as const
const READ_ONLY = 'set default_transaction_read_only = '
const REFUSED_WRITE = 'create table refused (n int4)'

/** What tells a connection from others: a prepared statement ends with it. */
async function mark(db: Database) {
  await db.run(query('mark', 'prepare mark as select 1'), [])
  const text = `select pg_backend_pid() as pid,
    exists (select from pg_prepared_statements where name = 'mark') as marked`
  return async () => JSON.stringify(await db.run(query('who', text), []))
}

await eachBackend(
  t,
  'an answer of a working database is unavailable and keeps the connection',
  async (t, backend) => {
    const db = await open(t, backend, SHORT_MS)
    let heard = 0
    await db.listen('answers', () => (heard += 1))
    await until(() => heard > 0, 'the call at connect')
    const connection = await mark(db)
    const before = await connection()
    t.match(before, /"marked":true/)
    for (const [code, text] of BUSY) {
      const error = await failure(db.run(query(code, text), []))
      t.ok(error instanceof Unavailable, `${code}: ${String(error)}`)
      t.match(error, { cause: { code } })
      t.equal(await connection(), before, code)
      const inside = await failure(
        db.transaction((tx) => tx.run(query(code, text), []).catch(() => tx.run(ONE, []))),
      )
      t.ok(inside instanceof Unavailable, `${code} in a transaction: ${String(inside)}`)
      t.equal(await connection(), before, `${code} in a transaction`)
    }
    t.equal(heard, 1, 'nothing was missed')
  },
)

t.test('a server that takes no changes any more is left for another connection', async (t) => {
  const db = await open(t, postgres)
  const connection = await mark(db)
  const before = await connection()
  await db.run(query('demote', `${READ_ONLY}on`), [])
  const error = await failure(db.run(query('write', REFUSED_WRITE), []))
  t.match(error, { name: 'Unavailable', cause: { code: '25006' } })
  t.not(await connection(), before)
  t.match(await connection(), /"marked":false/)
})

t.test('an embedded statement that outlives its deadline keeps its connection', async (t) => {
  const lines: string[] = []
  const options = {
    target: await sharedEngine(),
    onLate: (name: string) => lines.push(`late: ${name}`),
    onLateEnd: (name: string, ms: number) => lines.push(`ended: ${name}, ${ms > SHORT_MS}`),
  }
  const db = client(t, options, SHORT_MS)
  let heard = 0
  await db.listen('late', () => (heard += 1))
  const connection = await mark(db)
  const before = await connection()
  // PostgreSQL sleeps in one piece here, and looks at interrupts afterwards.
  const slow = query('slow', 'select pg_sleep(5)::text as slept')
  const inside = db.transaction(async (tx) => {
    await tx.run(query('table', 'create table undone (n int4)'), [])
    await tx.run(slow, [])
  })
  t.match(await failure(inside), { name: 'Unavailable', message: /^slow: no answer in 1000 ms/ })
  t.same(lines, ['late: slow'])
  const waiting = await failure(db.run(ONE, []))
  t.match(waiting, { name: 'Unavailable', message: /no connection was free/ })
  const after = await until(() => connection(), 'the statement to have ended')
  t.equal(after, before)
  t.same(lines, ['late: slow', 'ended: slow, true'])
  const undone = query('undone', `select to_regclass('undone') is null as yes`)
  t.same(await db.run(undone, []), [{ yes: true }], 'rolled back')
  t.equal(heard, 1)
})

t.test('a server out of reach counts as unavailable', async (t) => {
  const port = await freePort()
  const target = `postgres://nobody:nothing@127.0.0.1:${port}/none`
  const db = client(t, { target }, SHORT_MS)
  const nothing = query('nothing', 'select 1 as n')
  t.match(await failure(db.run(nothing, [])), { name: 'Unavailable', message: /^nothing: / })
  t.match(await failure(db.ping()), { name: 'Unavailable' })
  t.match(await failure(db.transaction((tx) => tx.run(nothing, []))), { name: 'Unavailable' })
  t.match(await failure(db.listen('anything', () => undefined)), { name: 'Unavailable' })
})

t.test('a cut connection is unavailable once, then replaced; listeners hear of it', async (t) => {
  const metrics = createMetrics()
  const db = client(t, { target: await freshUrl(t), metrics })
  let heard = 0
  await db.listen('signals', () => (heard += 1))
  const start = await until(() => heard, 'the call at connect')
  const notify = query('notify', `select pg_notify('signals', '')::text as sent`)
  await db.run(notify, [])
  const notified = await until(() => heard > start && heard, 'the notification')
  const cut = `select count(pg_terminate_backend(pid))::int4 as n from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`
  t.match(await db.run(query('cut', cut), []), [{ n: Number }])
  await until(() => heard > notified, 'the call at reconnect')

  const own = query('own', 'select pg_terminate_backend(pg_backend_pid()) as done')
  t.match(await failure(db.run(own, [])), { name: 'Unavailable' })
  t.same(await until(() => db.run(ONE, []), 'a new connection'), [{ n: 1 }])
  const [, reconnects] =
    /^gatehouse_database_reconnects_total (\d+)$/m.exec(metrics.render()) ?? []
  t.equal(reconnects, '2', 'both are counted')
})

await eachBackend(t, 'notifications reach the listener of their channel', async (t, backend) => {
  const db = await open(t, backend)
  const heard: unknown[] = []
  await db.listen('signals', (payload) => heard.push(payload))
  await db.listen('others', (payload) => heard.push(`others ${payload}`))
  await until(() => heard.length === 2, 'a call after each listen')
  const notify = query('notify', 'select pg_notify($1, $2)::text as sent')
  await db.run(notify, ['signals', 'a'])
  await db.transaction((tx) => tx.run(notify, ['others', 'b']))
  const undone = db.transaction(async (tx) => {
    await tx.run(notify, ['signals', 'never'])
    throw new RangeError('undo')
  })
  await failure(undone)
  await db.run(notify, ['signals', 'c'])
  await until(() => heard.length >= 5, 'the notifications')
  t.same(heard, [undefined, 'others undefined', 'a', 'others b', 'c'])
})

t.test('the embedded engine takes the most urgent statement next', async (t) => {
  const db = await open(t, embedded)
  const begun = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const holder = db.transaction(async (tx) => {
    await tx.run(query('one', 'select 1 as n'), [])
    begun.resolve()
    await release.promise
  })
  await begun.promise
  const order: string[] = []
  const waiting = (['extras', 'strangers', 'trusted', 'deliveries'] as const).map(
    async (level) => {
      await db.at(level).run(query(level, 'select 1 as n'), [])
      order.push(level)
    },
  )
  release.resolve()
  await Promise.all([holder, ...waiting])
  t.same(order, ['deliveries', 'trusted', 'strangers', 'extras'])
})

function query(name: string, text: string) {
  return { name, text }
}

async function failure(work: Promise<unknown>) {
  try {
    await work
  } catch (error) {
    return error
  }
  throw new Error('it succeeded, expected a failure')
}

function client(
  t: Owner,
  options: Omit<ClientOptions, 'deadlineMs' | 'connections'>,
  deadlineMs = 5_000,
) {
  const db = openClient({ ...options, deadlineMs, connections: 3 })
  t.teardown(() => db.close())
  return db
}

function sharedEngine() {
  shared.embedded ??= openEngine()
  return shared.embedded
}

async function openEngine() {
  const { GATEHOUSE_DATA_DIR: directory = '' } = await embedded.emptyEnv(file)
  const engine = await openEmbedded(directory)
  file.teardown(() => engine.close())
  return engine
}

async function freshUrl(t: Owner) {
  const databases = await sharedPostgres()
  const url = await databases.createDatabase()
  t.teardown(() => databases.dropDatabase(url))
  return url
}

/** A client on the shared database. */
async function open(t: Owner, backend: Backend, deadlineMs?: number) {
  if (backend.name === 'postgres') {
    shared.url ??= freshUrl(file)
    return client(t, { target: await shared.url }, deadlineMs)
  }
  return client(t, { target: await sharedEngine() }, deadlineMs)
}
