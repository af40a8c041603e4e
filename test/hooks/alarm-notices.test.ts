import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { addDestination } from '../helpers/destinations.ts'
import { addProvider, deliver, post, SIGNED_ENV } from '../helpers/hooks.ts'
import { inventoryFile } from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secretKey } from '../helpers/senders.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

/** A notice as the receiver got it. */
type Told = {
  readonly id: number
  readonly begin_id: number | null
  readonly level: string
  readonly message: string
  readonly service: string
  readonly url: string
}

/** What begins an alarm, and what ends it. */
type Case = {
  readonly name: string
  readonly begin: () => Promise<unknown>
  readonly end: () => Promise<unknown>
  readonly level: string
  readonly message: string
  readonly path: string
}

await onPostgres(t, 'alarms are told once by two instances', async (t: Test, backend) => {
  const receiver = await startReceiver(t)
  const env = {
    ...SIGNED_ENV,
    ...(await backend.env(t)),
    GATEHOUSE_SECRET_KEY: secretKey(),
    HOOKS_BASE_URL: 'https://hooks.example',
    HOOKS_REPLAY_TARGETS: '127.0.0.1',
    OPS_INVENTORY: await inventoryFile(t, { services: [] }),
    OPS_NOTIFY_URL: `${receiver.url}/told`,
  }
  const startBoth = () =>
    Promise.all([1, 2].map(() => startServer(t, { services: ['hooks', 'ops'], env })))
  let servers: readonly TestServer[] = await startBoth()
  const base = () => servers[0]?.hooks ?? ''
  const token = await addProvider(base(), 'ci')
  await addDestination(env, 'erp', 'http://127.0.0.1:9/')
  const query = (text: string) => backend.query(env, text)
  const told = (): readonly Told[] =>
    receiver.received
      .map(({ body }): Told => JSON.parse(body.toString()))
      .filter(({ service }) => service === 'hooks')
  const toldCount = (count: number) =>
    until(() => told().length >= count && told(), `${count} notices`, 30_000)
  const changed = (text: string) =>
    query(`with changed as (${text}) select pg_notify('hooks_config', '')`)

  const cases: readonly Case[] = [
    {
      name: 'a silent provider',
      begin: async () => {
        await runCli(['provider', 'alarm', 'ci', '--expect', '1h'], { env })
        await query(`update hooks.providers set watched_since = now() - interval '2 hours'`)
      },
      end: () => post(base(), 'generic/ci', '{}', { Authorization: `Bearer ${token}` }),
      level: 'critical',
      message: 'generic:ci: no event for longer than 1h',
      path: '/providers',
    },
    {
      name: 'a burst of refusals',
      begin: async () => {
        await runCli(['provider', 'alarm', 'code_host', '--burst', '3'], { env })
        await Promise.all([1, 2, 3].map(() => post(base(), 'code_host', '{}')))
      },
      end: () =>
        query(`update hooks.rejection_minutes set minute = minute - interval '6 minutes'`),
      level: 'warning',
      message: 'code_host: 3 or more deliveries with a wrong secret in 5 minutes',
      path: '/providers',
    },
    {
      name: 'a destination that failures have disabled',
      begin: () =>
        changed(`update hooks.destinations set disabled_at = now(), disabled_by = 'failures'`),
      end: () => runCli(['destination', 'enable', 'erp'], { env }),
      level: 'critical',
      message: 'Destination erp is disabled, because its deliveries failed: events wait',
      path: '/destinations/erp',
    },
  ]

  for (const [at, { name, begin, end, level, message, path }] of cases.entries()) {
    await t.test(name, async (t) => {
      await begin()
      const [first] = (await toldCount(2 * at + 1)).slice(-1)
      t.match(first, { level, message, begin_id: null, url: `https://hooks.example${path}` })
      await end()
      const [last] = (await toldCount(2 * at + 2)).slice(-1)
      t.match(last, { level: 'info', message: `Over: ${message}`, begin_id: first?.id ?? 0 })
    })
  }

  await t.test(
    'after a restart what is over ends, and what lasts is not told again',
    async (t) => {
      const [silent, burst, disabled] = cases
      await query(`update hooks.activity set minute = minute - interval '3 hours'`)
      await query(`update hooks.events set received_at = received_at - interval '3 hours'`)
      await disabled?.begin()
      await toldCount(8)
      for (const server of servers) await server.stop()
      await query('update hooks.destinations set disabled_at = null, disabled_by = null')
      servers = await startBoth()
      await toldCount(9)
      t.equal((await deliver(base(), 'code_host', '{}')).status, 202)
      await burst?.begin()
      const all = await toldCount(10)
      const messages = all.slice(6).map(({ message }) => message)
      t.same(messages.slice(0, 2).toSorted(), [disabled?.message, silent?.message])
      t.same(messages.slice(2), [`Over: ${disabled?.message}`, burst?.message])
      const lasting = await query(
        'select message from notices.notices where key is not null and ended_at is null order by 1',
      )
      t.same(lasting, [{ message: burst?.message }, { message: silent?.message }])
    },
  )

  await t.test('a provider that is removed ends its alarm', async (t) => {
    await runCli(['provider', 'remove', 'ci'], { env })
    const [last] = (await toldCount(11)).slice(-1)
    t.match(last, { message: 'Over: generic:ci: no event for longer than 1h' })
  })
})
