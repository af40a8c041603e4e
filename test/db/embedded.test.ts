import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import postgres from 'postgres'
import t from 'tap'
import { openEmbedded } from '../../db/embedded/open.ts'
import { embedded } from '../helpers/backends.ts'

const { GATEHOUSE_DATA_DIR: directory = '' } = await embedded.emptyEnv(t)
const engine = await openEmbedded(directory)
let sql = connect()
t.teardown(async () => {
  await sql.end()
  await engine.close()
})

/** The engine has one connection: a new one ends the one before. */
function connect(socket = engine.socket) {
  const options = { host: 'embedded', user: 'postgres', database: 'postgres', max: 1 }
  return postgres({ ...options, socket, onnotice: () => undefined, max_lifetime: null } as object)
}

t.test('messages may arrive in any pieces', async (t) => {
  const direct = engine.socket()
  const write = direct.write.bind(direct)
  direct.write = (chunk: Buffer) => {
    for (const byte of chunk) write(Buffer.of(byte))
    return true
  }
  const slow = connect(() => direct)
  t.same(await slow`select ${'x'.repeat(2000)}::text as v`, [{ v: 'x'.repeat(2000) }])
  await slow.end()
  await sql.end({ timeout: 0 })
  sql = connect()
})

t.test('a connection that dies in a transaction leaves nothing behind', async (t) => {
  await sql`create table mark as select 'kept' as name`
  await sql.end()
  let socket: Duplex | undefined
  const doomed = connect(() => (socket = engine.socket()))
  const work = doomed.begin(async (tx) => {
    await tx`insert into mark values ('doomed')`
    socket?.destroy()
    await tx`select 1`
  })
  await t.rejects(work, { code: 'CONNECTION_CLOSED' })
  await doomed.end({ timeout: 0 })
  sql = connect()
  t.same(await sql`select name from mark`, [{ name: 'kept' }])
  const names =
    await sql`select name from pg_prepared_statements where statement like 'insert%doomed%'`
  t.same(names, [], 'its prepared statements are freed')
})

t.test(
  'a statement that still runs when its connection is given up is over before the next',
  async (t) => {
    const slow = sql.unsafe('begin; insert into mark select pg_sleep(2)::text; select 1')
    slow.catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 100))
    const next = connect()
    t.same(await next`select name from mark`, [{ name: 'kept' }], 'and is rolled back')
    await t.rejects(slow, { code: 'CONNECTION_CLOSED' })
    await sql.end({ timeout: 0 })
    sql = next
  },
)

t.test('closing ends connections and shuts PostgreSQL down cleanly', async (t) => {
  await sql`create table kept as select 1 as n`
  await sql.end()
  const client = connect()
  const open = client.begin(async (tx) => {
    await tx`insert into kept values (2)`
    await engine.close()
    await tx`select 1`
  })
  await t.rejects(open, { code: 'CONNECTION_CLOSED' })
  await client.end({ timeout: 0 })
  await engine.close()
  // DB_SHUTDOWNED in the control file: the next start needs no recovery.
  t.equal(readFileSync(join(directory, 'pg/global/pg_control')).readUInt32LE(16), 1)
})

// PostgreSQL refuses changes once the oldest database is 2,000 million transactions old.
t.test('no database is there that is never vacuumed', async (t) => {
  const again = await openEmbedded(directory)
  const made = connect(again.socket)
  t.same(await made`select n from kept`, [{ n: 1 }])
  t.same(await made`select datname from pg_database`, [{ datname: 'postgres' }])
  for (let i = 0; i < 200; i++) await made`select pg_current_xact_id()`
  const [before] = await made`select max(age(datfrozenxid)) as age from pg_database`
  t.ok(before?.['age'] >= 200, `${before?.['age']} transactions`)
  await made`set vacuum_freeze_min_age = 0`
  await made`set vacuum_freeze_table_age = 0`
  await made`vacuum`
  const [after] = await made`select max(age(datfrozenxid)) as age from pg_database`
  t.ok(after?.['age'] < 200, `${after?.['age']} after a vacuum`)
  await made.end()
  await again.close()
})
