import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import path from 'node:path'
import postgres from 'postgres'
import t from 'tap'
import { openEmbedded } from '../../db/embedded/open.ts'

const engine = await openEmbedded({ directory: path.join(t.testdir(), 'data'), turnTimeoutMs: 400 })
const sql = connect()
t.teardown(async () => {
  await sql.end()
  await engine.close()
})

function connect(max = 4, socket = engine.socket): postgres.Sql {
  const options = { host: 'embedded', user: 'postgres', database: 'postgres', max }
  return postgres({ ...options, socket, onnotice: () => undefined, max_lifetime: null } as object)
}

async function refusal(work: Promise<unknown>): Promise<postgres.PostgresError> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof postgres.PostgresError) return error
  throw new Error('expected an error of PostgreSQL', { cause: error })
}

t.test('values survive the round trip', async (t) => {
  await sql`create table event (id bigserial primary key, kind text, body bytea, doc jsonb)`
  const body = Buffer.from([0, 1, 2, 255, 254, 10, 13])
  const [row] = await sql`
    insert into event (kind, body, doc) values ('ünï', ${body}, ${sql.json({ a: [1, null] })})
    returning kind, body, doc`
  t.same(row, { kind: 'ünï', body, doc: { a: [1, null] } })
})

t.test('a 5 MB bytea goes in and comes out', async (t) => {
  const body = Buffer.alloc(5_000_000, 'gatehouse')
  const [row] = await sql`insert into event (body) values (${body}) returning body`
  t.ok(body.equals(row?.['body']))
})

t.test('messages may arrive in any pieces', async (t) => {
  const direct = engine.socket()
  const write = direct.write.bind(direct)
  direct.write = (chunk: Buffer) => {
    for (const byte of chunk) write(Buffer.of(byte))
    return true
  }
  const slow = connect(1, () => direct)
  t.same(await slow`select ${'x'.repeat(2000)}::text as v`, [{ v: 'x'.repeat(2000) }])
  await slow.end()
})

t.test('prepared statements, parallel queries, simple queries and cursors', async (t) => {
  const answers = await Promise.all(
    Array.from({ length: 300 }, async (_, i) => (await sql`select ${i}::int as i`)[0]?.['i']),
  )
  t.same(answers, [...answers.keys()])
  const results: unknown = await sql.unsafe('select 1 as a; select 2 as b')
  t.same(results, [[{ a: 1 }], [{ b: 2 }]])
  let count = 0
  for await (const rows of sql`select generate_series(1, 1000)`.cursor(100)) count += rows.length
  t.equal(count, 1000)
})

t.test('errors carry their SQLSTATE and the connection recovers', async (t) => {
  const one = connect(1)
  t.equal((await refusal(one`select 1 / 0`)).code, '22012')
  t.equal((await refusal(one`select ${'x'}::int`)).code, '22P02')
  t.equal((await refusal(one`insert into nowhere values (1)`)).code, '42P01')
  t.same(await one`select 1 as fine`, [{ fine: 1 }])
  await one.end()
})

t.test('transactions commit, roll back, and keep to savepoints', async (t) => {
  await sql`create table mark (name text)`
  await sql.begin(async (tx) => {
    await tx`insert into mark values ('kept')`
    const inner = tx.savepoint(async (point) => {
      await point`insert into mark values ('savepoint')`
      throw new Error('undo')
    })
    await t.rejects(inner, { message: 'undo' })
  })
  const outer = sql.begin(async (tx) => {
    await tx`insert into mark values ('rolled back')`
    throw new Error('undo')
  })
  await t.rejects(outer, { message: 'undo' })
  t.same(await sql`select name from mark`, [{ name: 'kept' }])
})

t.test('concurrent transactions take turns', async (t) => {
  const order: string[] = []
  const { promise: begun, resolve: hasBegun } = Promise.withResolvers<void>()
  const { promise: others, resolve: release } = Promise.withResolvers<void>()
  const first = sql.begin(async (tx) => {
    await tx`insert into mark values ('uncommitted')`
    hasBegun()
    await others
    order.push('first')
    throw new Error('undo')
  })
  await begun
  const second = sql.begin(async (tx) => {
    order.push('second')
    return (await tx`select name from mark`).length
  })
  const plain = sql`select name from mark`
  const seen = plain.then((rows) => rows.length)
  release()
  await t.rejects(first, { message: 'undo' })
  t.equal(await second, 1)
  t.equal(await seen, 1)
  t.same(order, ['first', 'second'])
})

t.test('a connection that waits too long for its turn fails, and works again later', async (t) => {
  const other = connect(3)
  // `postgres` asks for the array types on each new connection and ignores a failure of that.
  await Promise.all([other`select 1`, other`select 1`, other`select 1`])
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const { promise: begun, resolve: hasBegun } = Promise.withResolvers<void>()
  const holder = sql.begin(async (tx) => {
    await tx`select 1`
    hasBegun()
    await held
  })
  await begun
  const [prepared, simple, begin] = await Promise.all([
    refusal(other`select ${1}::int`),
    refusal(other.unsafe('select 1')),
    refusal(other.begin((tx) => tx`select 1`)),
  ])
  const text = 'another transaction held the embedded database for over 0.4 s'
  for (const error of [prepared, simple, begin]) {
    t.match(error, { code: '55P03', message: text })
  }
  release()
  await holder
  t.same(await other`select ${1}::int as fine`, [{ fine: 1 }])
  await other.end()
})

t.test('COPY FROM STDIN is refused and a transaction around it fails', async (t) => {
  t.equal((await refusal(sql`copy mark from stdin`)).code, '0A000')
  t.equal(
    (await refusal(sql.unsafe('/* x */ COPY mark (name)\nFROM STDIN').simple())).code,
    '0A000',
  )
  const around = sql.begin(async (tx) => {
    await tx`insert into mark values ('copied')`
    await refusal(tx.unsafe('copy mark from stdin'))
    await tx`select 1`
  })
  t.equal((await refusal(around)).code, '0A000')
  t.same(await sql`select 'copy mark from stdin' as text`, [{ text: 'copy mark from stdin' }])
  t.same(await sql`select name from mark`, [{ name: 'kept' }])
})

t.test('notifications reach each listener of the channel, whoever causes them', async (t) => {
  const [one, two] = [connect(), connect()]
  const heard: string[] = []
  const heardAll = async (...expected: string[]): Promise<void> => {
    // A notification precedes the answer to what caused it, so a round trip on each suffices.
    await Promise.all([one`select 1`, two`select 1`])
    t.same(heard.splice(0).toSorted(), expected)
  }
  const first = await one.listen('Signals', (text) => heard.push(`one:${text}`))
  const second = await two.listen('Signals', (text) => heard.push(`two:${text}`))
  await two.listen('other', (text) => heard.push(`other:${text}`))
  await sql.notify('Signals', 'a')
  await heardAll('one:a', 'two:a')
  await sql.begin((tx) => tx`select pg_notify('other', 'b')`)
  await heardAll('other:b')
  const undone = sql.begin(async (tx) => {
    await tx`select pg_notify('other', 'never')`
    throw new Error('undo')
  })
  await t.rejects(undone)
  await heardAll()
  await first.unlisten()
  await sql.notify('Signals', 'c')
  await heardAll('two:c')
  await one.listen('Signals', (text) => heard.push(`again:${text}`))
  await one.listen('Signals', (text) => heard.push(`twice:${text}`))
  await sql.notify('Signals', 'd')
  await heardAll('again:d', 'twice:d', 'two:d')
  await one.end()
  await sql.notify('Signals', 'e')
  await two`select 1`
  t.same(heard.splice(0), ['two:e'])
  await second.unlisten()
  await two.end()
})

t.test('a connection that dies in a transaction leaves nothing behind', async (t) => {
  let socket = engine.socket()
  const doomed = connect(1, () => (socket = engine.socket()))
  const work = doomed.begin(async (tx) => {
    await tx`insert into mark values ('doomed')`
    socket.destroy()
    await tx`select 1`
  })
  await t.rejects(work, { code: 'CONNECTION_CLOSED' })
  t.same(await sql`select name from mark`, [{ name: 'kept' }])
  await doomed.end({ timeout: 0 })
  const names =
    await sql`select name from pg_prepared_statements where statement like 'insert%doomed%'`
  t.same(names, [], 'its prepared statements are freed')
})

t.test('cancel requests and offers of encryption are harmless', async (t) => {
  const cancel = engine.socket()
  cancel.resume()
  cancel.write(Buffer.from('0000001004d2162e0000000100000002', 'hex'))
  await once(cancel, 'close')
  const tls = engine.socket()
  tls.write(Buffer.from('0000000804d2162f', 'hex'))
  const [answer] = await once(tls, 'data')
  t.equal(String(answer), 'N')
  tls.destroy()
})
