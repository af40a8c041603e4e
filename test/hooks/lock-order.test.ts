import postgres from 'postgres'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { addProvider, post, startHooks } from '../helpers/signing-setup.ts'
import type { Hooks } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

// What an instance counts in memory is one statement for many rows: two that took them in different
// orders would each wait for the other. Another instance is played by a transaction of our own.

const [, server] = backends

/** Holds the row of `first`, has the server write both, and then takes the row of `last`. */
async function holdOneTakeOther(
  t: Test,
  { env }: Hooks,
  lock: (provider: string) => string,
  [first, last]: readonly [string, string],
  cause: () => Promise<void>,
  statement: string,
): Promise<void> {
  const sql = postgres(env['DATABASE_URL'] ?? '', { max: 1, onnotice: () => undefined })
  t.teardown(() => sql.end())
  await sql.begin(async (tx) => {
    await tx.unsafe(lock(first))
    await cause()
    const waits = `select 1 from pg_stat_activity
      where wait_event_type = 'Lock' and query like '%${statement}%'`
    await until(async () => (await server.query(env, waits)).length > 0, 'the server to wait')
    await tx.unsafe(lock(last))
  })
}

t.test('two instances that count refusals do not block each other', async (t) => {
  const hooks = await startHooks(t, server)
  const { base, env } = hooks
  const refused = async (): Promise<void> => {
    for (const provider of ['payments', 'chat', 'code_host']) await post(base, provider, '{}')
  }
  const total = async (): Promise<unknown> =>
    (await server.query(env, 'select sum(total)::int as n from hooks.rejection_totals'))[0]?.['n']
  // Without a time stamp a delivery of chat is 400, and no rejection.
  await refused()
  await until(async () => (await total()) === 2, 'a first flush')
  const lock = (provider: string): string =>
    `update hooks.rejection_totals set total = total where provider = '${provider}'`
  const order = ['code_host', 'payments'] as const
  await holdOneTakeOther(t, hooks, lock, order, refused, 'insert into hooks.rejection_writers')
  await until(async () => (await total()) === 4, 'the second flush')
  t.notMatch(hooks.server.logs().join('\n'), 'rejections not saved')
})

t.test('two instances that note uses of secrets do not block each other', async (t) => {
  const hooks = await startHooks(t, server)
  const { base, env } = hooks
  const tokens = [await addProvider(base, 'b'), await addProvider(base, 'a')]
  const lock = (provider: string): string =>
    `update hooks.providers set enabled = enabled where name = '${provider}'`
  const use = async (): Promise<void> => {
    for (const [n, name] of ['b', 'a'].entries()) {
      await post(base, `generic/${name}`, '{}', { Authorization: `Bearer ${tokens[n]}` })
    }
  }
  const order = ['generic:a', 'generic:b'] as const
  await holdOneTakeOther(t, hooks, lock, order, use, 'last_secret_at')
  const used = `select count(*)::int as n from hooks.providers where last_secret = 'current'`
  await until(async () => (await server.query(env, used))[0]?.['n'] === 2, 'both to be noted')
  t.notMatch(hooks.server.logs().join('\n'), 'uses of secrets not saved')
})
