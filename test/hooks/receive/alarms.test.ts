import { t } from 'tap'
import { postgres } from '../../helpers/backends.ts'
import { runCli } from '../../helpers/cli.ts'
import { addDestination } from '../../helpers/destinations.ts'
import {
  SIGNED_ENV,
  addProvider,
  deliver,
  enable,
  formCall,
  post,
  type Fields,
} from '../../helpers/hooks.ts'
import { request } from '../../helpers/http.ts'
import { inventoryFile } from '../../helpers/ops.ts'
import { expectStatus, refuseAll, type Refusal } from '../../helpers/refusals.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { addSigned, cardOf, change, secretKey, sendStandard } from '../../helpers/senders.ts'
import { HURRIED, startServer, type TestServer } from '../../helpers/server.ts'
import { until } from '../../helpers/until.ts'
import { calm } from '../../helpers/notices.ts'

/** A notice as its receiver got it. */
type Told = {
  id: number
  begin_id: number | null
  level: string
  message: string
  service: string
  url: string
}

const SILENT = 'no event for longer than expected: 1 provider'
const BURST = 'many rejected deliveries: 1 provider'

// Two instances on one database: each alarm shows on both, and is told once.
const receiver = await startReceiver(t)
const env = {
  ...SIGNED_ENV,
  ...(await postgres.env(t)),
  GATEHOUSE_SECRET_KEY: secretKey(),
  HOOKS_BASE_URL: 'https://hooks.example',
  HOOKS_MAX_BODY: '1000',
  HOOKS_REPLAY_TARGETS: '127.0.0.1',
  OPS_INVENTORY: await inventoryFile(t, { services: [] }),
  OPS_NOTIFY_URL: `${receiver.url}/told`,
}
const startBoth = () =>
  Promise.all([
    startServer(t, { services: ['hooks', 'ops'], env, clock: HURRIED }),
    startServer(t, { services: ['hooks'], env, clock: HURRIED }),
  ])
await calm(env)
let servers: readonly TestServer[] = await startBoth()
const base = () => servers[0]?.hooks ?? ''
const token = await addProvider(base(), 'ci')
await addDestination(base(), 'erp', 'http://127.0.0.1:9/')
const query = postgres.query.bind(undefined, env)
const provider = (...words: readonly string[]) => runCli(['provider', 'alarm', ...words], { env })
const send = () => post(base(), 'generic/ci', '{}', { Authorization: `Bearer ${token}` })
const wrong = (count: number, name: string) =>
  Promise.all(Array.from({ length: count }, () => post(base(), name, '{}')))

/** The alarms of one instance, as `/metrics` tells: 1 fires, 0 is set. */
async function metrics(of = base()) {
  const { text } = await request(`${of}/metrics`)
  const line = /^gatehouse_hooks_alarm\{provider="([^"]+)",kind="(\w+)"\} (\d)$/gm
  return Object.fromEntries(
    [...text.matchAll(line)].map(([, name, kind, value]) => [`${name} ${kind}`, Number(value)]),
  )
}

/** `status` and reasons of the health probe of one instance. */
async function health(of = base()) {
  const { text } = await request(`${of}/healthz`)
  const said = JSON.parse(text) as { status: string; reasons?: readonly string[] }
  return [said.status, ...(said.reasons ?? [])].join('; ')
}

/** Waits until both instances have this state of an alarm. */
async function untilBoth(alarm: string, value: number | undefined) {
  for (const { hooks } of servers) {
    const has = async () => (await metrics(hooks))[alarm] === value
    await until(has, `${alarm}: ${value}`, undefined, 100)
  }
}

/** Waits for so many notices in all; gives the newest one. A stop may have one sent again, with its id. */
async function newest(count: number): Promise<Told> {
  function told(): readonly Told[] {
    const all = receiver.received.map(({ body }): Told => JSON.parse(body.toString()))
    const own = all.filter(({ service }) => service === 'hooks')
    return own.filter(({ id }, at) => own.findIndex((one) => one.id === id) === at)
  }
  return until(() => told().length >= count && told().at(-1), `${count} notices`)
}

/** As if this provider had been watched for two hours without an event. */
const watchedLong = () =>
  query(`update hooks.providers set watched_since = now() - interval '2 hours'`)

/** A destination, disabled as failures do it, past its worker. */
const disableByFailures = () =>
  query(
    `with changed as (update hooks.destinations set disabled_at = now(), disabled_by = 'failures')
     select pg_notify('hooks_config', '')`,
  )

await t.test('an operator sets alarms; without that there is none', async (t) => {
  await wrong(30, 'code_host')
  await until(async () => /30/.test((await cardOf(base(), 'code_host'))['Rejected'] ?? ''), '30')
  t.same(await metrics(), {})
  const alarms = async (name = 'generic:ci') => (await cardOf(base(), name))['Alarms']
  t.equal(await alarms(), 'off')
  await change(base(), 'generic:ci', 'alarm', { expected_interval: '5m' })
  await change(base(), 'generic:ci', 'alarm', { rejection_burst: '1000' })
  const both = 'silent after 5m; 1000 refusals in 5 minutes'
  t.equal(await alarms(), both, 'a field that is not sent stays')
  t.match(await provider('ci', '--off'), { code: 0, stderr: /silence raises no alarm; refusals/ })
  await until(async () => (await alarms()) === 'off', 'off')

  const call = (name: string, fields: Fields) => formCall(`/providers/${name}/alarm`, fields)
  const bad = {
    expected_interval: ['1', '1w', '-1h', '0s', '367d', 'x'],
    rejection_burst: ['-1', '1.5', '1000001', 'x'],
  }
  const rows = Object.entries(bad).flatMap(([field, values]) =>
    values.map((value): Refusal => {
      const text = new RegExp(`^${field} must be a whole number`)
      return [call('generic:ci', { [field]: value }), 422, text]
    }),
  )
  await refuseAll(t, { service: 'hooks', base: base(), state: alarms }, [
    ...rows,
    [call('generic:none', {}), 404],
  ])
})

await t.test('a silent provider', async (t) => {
  t.match(await provider('ci', '--expect', '1h'), { code: 0 })
  await untilBoth('generic:ci silent', 0)
  t.equal(await health(), 'ok', 'counted from when it is set')
  await watchedLong()
  await untilBoth('generic:ci silent', 1)
  for (const { hooks } of servers) t.equal(await health(hooks), `degraded; ${SILENT}`)
  const { text } = await request(`${base()}/`)
  t.match(text, /1 provider silent[\s\S]*generic:<wbr \/>ci<\/a>: no event for longer/)
  t.match(await cardOf(base(), 'generic:ci'), { badges: 'token, silent' })
  const message = 'generic:ci: no event for longer than 1h'
  const first = await newest(1)
  t.match(first, { level: 'critical', message, url: 'https://hooks.example/providers' })
  await expectStatus(202, send())
  await untilBoth('generic:ci silent', 0)
  const over = { level: 'info', message: `Over: ${message}`, begin_id: first.id }
  t.match(await newest(2), over)

  // A provider that is disabled is watched no more.
  await query(`update hooks.activity set minute = minute - interval '3 hours'`)
  await query(`update hooks.events set received_at = received_at - interval '3 hours'`)
  await watchedLong()
  await untilBoth('generic:ci silent', 1)
  await newest(3)
  await enable(base(), 'generic:ci', false)
  await untilBoth('generic:ci silent', undefined)
  t.equal(await health(), 'ok')
  t.match(await newest(4), { message: `Over: ${message}` })
  await enable(base(), 'generic:ci', true)
})

await t.test('when a provider was heard last is known after retention', async (t) => {
  await expectStatus(202, deliver(base(), 'chat', '{}'))
  await provider('ci', '--off')
  await change(base(), 'chat', 'alarm', { expected_interval: '1h' })
  // As if the only event had been pruned.
  await query('delete from hooks.events')
  await watchedLong()
  await untilBoth('chat silent', 0)
  const card = await cardOf(base(), 'chat')
  t.match(card, { 'Last 24 hours': '1', 'Last event': /^(?!never)/ })
  await query(`update hooks.activity set minute = minute - interval '2 hours'`)
  await untilBoth('chat silent', 1)
  await newest(5)
  await change(base(), 'chat', 'alarm', { expected_interval: '' })
  await newest(6)
})

await t.test('a burst of wrong signatures and tokens', async (t) => {
  const signing = await addSigned(base(), 'shop')
  await provider('shop', '--burst', '5', '--expect', '24h')
  await untilBoth('generic:shop burst', 0)
  await wrong(4, 'generic/shop')
  await post(base(), 'generic/shop', 'x'.repeat(1001))
  await enable(base(), 'generic:shop', false)
  await wrong(3, 'generic/shop')
  await enable(base(), 'generic:shop', true)
  const counted = async () => (await cardOf(base(), 'generic:shop'))['Rejected'] ?? ''
  await until(async () => /^\D*8\b/.test(await counted()), 'all refusals to be counted')
  t.equal((await metrics())['generic:shop burst'], 0, 'too long and disabled do not count')
  await expectStatus(202, sendStandard(base(), 'shop', signing))
  await post(servers[1]?.hooks ?? '', 'generic/shop', '{}')
  await untilBoth('generic:shop burst', 1)
  t.equal(await health(), `degraded; ${BURST}`)
  const message = 'generic:shop: 5 or more deliveries with a wrong secret in 5 minutes'
  const first = await newest(7)
  t.match(first, { level: 'warning', message })
  await expectStatus(202, sendStandard(base(), 'shop', signing), 'right ones are taken')
  await query(`update hooks.rejection_minutes set minute = minute - interval '6 minutes'`)
  t.match(await newest(8), { message: `Over: ${message}`, begin_id: first.id })
})

await t.test('a restart ends what is over, and tells nothing twice', async (t) => {
  const failing = 'Destination erp is disabled, because its deliveries failed: events wait'
  const burst = 'code_host: 3 or more deliveries with a wrong secret in 5 minutes'
  await disableByFailures()
  const url = 'https://hooks.example/destinations/erp'
  t.match(await newest(9), { level: 'critical', message: failing, url })
  await provider('code_host', '--burst', '3')
  await wrong(3, 'code_host')
  t.match(await newest(10), { message: burst })
  for (const server of servers) await server.stop()
  await query('update hooks.destinations set disabled_at = null, disabled_by = null')
  servers = await startBoth()
  t.match(await newest(11), { message: `Over: ${failing}` })
  await untilBoth('code_host burst', 1)
  const logged = () => (servers[0]?.logs() ?? []).filter((line) => line.includes('"msg":"alarm'))
  await until(() => logged().length > 0, 'the line of the alarm')
  t.match(logged(), [/"provider":"code_host","kind":"burst"/], 'one line for what lasts')
  await addProvider(base(), 'gone')
  await provider('gone', '--expect', '1h')
  await watchedLong()
  const silent = 'generic:gone: no event for longer than 1h'
  t.match(await newest(12), { message: silent }, 'the burst was not told again')
  await runCli(['provider', 'remove', 'gone'], { env })
  t.match(await newest(13), { message: `Over: ${silent}` }, 'its removal ends it')
})
