import { t, type Test } from 'tap'
import { openClient } from '../../db/client.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { run, sharedPostgres } from '../helpers/postgres.ts'
import { secret } from '../helpers/secrets.ts'
import { startTcpProxy, type TcpProxy } from '../helpers/tcp-proxy.ts'
import { until } from '../helpers/until.ts'

// The promise: whatever the network does to a connection, its statement is unavailable, the next one works, and
// the answer of the one is never that of the other.

const DEADLINE_MS = 400
const CONNECTIONS = 2
const numbers = { name: 'numbers', text: 'select n::integer as n from generate_series(1, 3) as n' }
const NUMBERS = [{ n: 1 }, { n: 2 }, { n: 3 }]
const OURS = `select pid from pg_stat_activity
  where datname = current_database() and application_name like 'gatehouse %'`
const END = '%pg_terminate_backend%'

await t.test('an answer that is cut anywhere spoils no later one', async (t) => {
  const { proxy, count } = await open(t)
  let [cut, whole] = [0, 0]
  for (let bytes = 0; whole < CONNECTIONS + 1; bytes++) {
    await until(count, 'a connection')
    proxy.cutAfter(bytes)
    try {
      t.same(await count(), NUMBERS, `whole before the cut after ${bytes} bytes`)
      whole++
    } catch (error) {
      cut++
      if (!(error instanceof Unavailable)) t.fail(`after ${bytes} bytes: ${String(error)}`)
    }
    await proxy.pass()
    const next = await until(count, 'the next answer')
    t.same(next, NUMBERS, `the one after a cut after ${bytes} bytes`)
  }
  t.ok(cut > 40, `${cut} were cut`)
})

await t.test('connections that are lost without a word are replaced each time', async (t) => {
  const { url, proxy, db, count } = await open(t)
  for (let round = 0; round < 2; round++) {
    const both = () => Promise.all([count(), count()])
    await until(both, 'two connections')
    const { over, transaction } = await until(async () => {
      const locked = Promise.withResolvers<void>()
      const over = Promise.withResolvers<void>()
      const transaction = db.transaction(async (tx) => {
        await tx.run(
          { name: 'lock', text: `select pg_advisory_xact_lock(70 + ${round})::text` },
          [],
        )
        locked.resolve()
        await over.promise
        await tx.run(numbers, [])
      })
      await Promise.race([locked.promise, transaction])
      return { over, transaction }
    }, 'a transaction that holds the lock')
    proxy.lose()
    const answers = await Promise.allSettled([count(), count()])
    for (const answer of answers) {
      t.ok(answer.status === 'rejected' && answer.reason instanceof Unavailable)
    }
    over.resolve()
    await t.rejects(transaction, { name: 'Unavailable' }, 'its transaction too')
    await until(both, 'two new connections')
    await until(() => proxy.open <= CONNECTIONS, `${CONNECTIONS} connections at most`)
  }
  const locks = `select 1 from pg_locks
    where locktype = 'advisory' and objid between 70 and 71 and granted`
  await until(async () => (await run(url, locks)).length === 0, 'nobody to hold the locks')
  await until(() => db.transaction((tx) => tx.run(numbers, [])), 'another transaction')
})

await t.test(
  'the places of connections that are lost go to who waits for them, and are no more',
  async (t) => {
    const { url, proxy, db, count } = await open(t, 10_000)
    const stuck = { name: 'stuck', text: 'select pg_sleep(60)::text as slept' }
    const both = [db.run(stuck, []), db.run(stuck, [])]
    const waiting = [1, 2, 3].map(count)
    await until(
      async () => (await shown(url, '%pg_sleep%', 'active')) === CONNECTIONS,
      'both to be held',
    )
    proxy.reset()
    for (const answer of await Promise.allSettled(both)) t.equal(answer.status, 'rejected')
    for (const answer of await Promise.all(waiting)) t.same(answer, NUMBERS)
    // The lost ones are ended as well, on a connection that shows it as its last statement.
    await until(async () => (await shown(url, END, 'idle')) > 0, 'them to be ended')
    await until(() => proxy.open === CONNECTIONS, 'no more than those of the pool')
  },
)

await t.test(
  'a server without a free connection refuses new ones and keeps those there are',
  async (t) => {
    const databases = await sharedPostgres()
    const url = await databases.createDatabase()
    t.teardown(() => databases.dropDatabase(url))
    const guest = new URL(url)
    guest.username = `few_${guest.pathname.slice(-8)}`
    guest.password = secret('few-password')
    const { username } = guest
    await run(url, `create role ${username} login password '${guest.password}' connection limit 1`)
    t.teardown(() => run(databases.url(), `drop role ${username}`))
    const db = openClient({ target: guest.href, deadlineMs: 5_000, connections: CONNECTIONS })
    t.teardown(() => db.close())
    const who = { name: 'who', text: 'select pg_backend_pid() as pid' }
    const first = await db.run(who, [])
    const both = await db.transaction(async (tx) => {
      t.same(await tx.run(who, []), first)
      return db.run(numbers, []).catch((error: unknown) => error)
    })
    t.match(both, { name: 'Unavailable', cause: { code: '53300' } })
    t.same(await db.run(who, []), first, 'the connection that was there')
    await run(url, `alter role ${username} connection limit 10`)
    await db.transaction(async () => {
      t.same(await db.run(numbers, []), NUMBERS, 'a new one, once there is room')
    })
  },
)

await t.test('a server that hangs up is asked again, but not thousands of times', async (t) => {
  const { proxy, count, listens } = await open(t)
  await until(count, 'a connection')
  await until(listens, 'to listen')
  proxy.refuse('ended')
  proxy.reset()
  const before = proxy.accepted
  for (let n = 0; n < 5; n++) {
    const answers = await Promise.allSettled([1, 2, 3, 4].map(count))
    t.ok(answers.every((answer) => answer.status === 'rejected'))
  }
  const asked = proxy.accepted - before
  t.ok(asked > 0 && asked < 60, `${asked} connections for 20 statements`)
  await proxy.pass()
  t.same(await until(count, 'it to be back'), NUMBERS)
})

await t.test('after all kinds of faults no connection is left over', async (t) => {
  const { url, proxy, db, count, listens } = await open(t)
  const counted = async () => (await run(url, OURS)).length
  const faults: ((proxy: TcpProxy) => void)[] = [
    (at) => at.reset(),
    (at) => at.end('to-client'),
    (at) => at.end('to-server'),
    (at) => at.end(),
    (at) => at.cutAfter(3),
    (at) => at.stall(),
    (at) => at.stall('to-client'),
    (at) => at.stall('to-server'),
    (at) => at.refuse(),
  ]
  await until(listens, 'to listen')
  for (const fault of faults) {
    fault(proxy)
    const work = [1, 2, 3, 4].flatMap(() => [count(), db.transaction((tx) => tx.run(numbers, []))])
    for (const answer of await Promise.allSettled(work)) {
      if (answer.status === 'fulfilled') t.same(answer.value, NUMBERS)
      else if (!(answer.reason instanceof Unavailable)) t.fail(String(answer.reason))
    }
    await proxy.pass()
    t.same(await until(count, 'it to be back'), NUMBERS)
  }
  const most = 2 * CONNECTIONS + 1
  await until(async () => (await counted()) <= most, `${most} connections at most`)
  await db.close()
  await until(async () => (await counted()) === 0, 'none after the end')
})

async function open(t: Test, deadlineMs = DEADLINE_MS) {
  const databases = await sharedPostgres()
  const url = await databases.createDatabase()
  t.teardown(() => databases.dropDatabase(url))
  const proxy = await startTcpProxy(t, url)
  const db = openClient({ target: proxy.through(url), deadlineMs, connections: CONNECTIONS })
  t.teardown(() => db.close())
  return {
    url,
    proxy,
    db,
    count: () => db.run(numbers, []),
    listens: async () => {
      await db.listen('news', () => undefined)
      return true
    },
  }
}

/** How many of our connections are in a state with such a statement. */
async function shown(url: string, text: string, state: string) {
  return (await run(url, `${OURS} and query like $1 and state = $2`, [text, state])).length
}
