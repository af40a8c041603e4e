import { createHash } from 'node:crypto'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { eventsOf, inventoryFile, startOps } from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

const tokens = {
  backup: `${secret('beat')}-backup-0123456789`,
  report: `${secret('beat')}-report-0123456789`,
}
const env = await postgres.env(t)
const OPS_INVENTORY = await inventoryFile(t, {
  services: [
    {
      name: 'jobs',
      checks: [
        { type: 'heartbeat', name: 'backup', period: '24h', grace: '1h', token: tokens.backup },
        {
          ...{ type: 'heartbeat', name: 'report', period: '24h' },
          token_sha256: createHash('sha256').update(tokens.report).digest('hex'),
        },
      ],
    },
  ],
})
const ops = await startOps(t, postgres, { ...env, OPS_INVENTORY })
const call = (path: string, init: { method?: string } = {}) => request(`${ops.base}${path}`, init)
const query = (text: string) => postgres.query(ops.env, text)

/** Waits until a check says this. */
async function says(name: string, message: RegExp): Promise<void> {
  await until(async () => {
    const [row] = await query(`select message from ops.checks where name = '${name}'`)
    return message.test(String(row?.['message']))
  }, `${name} to say ${message}`)
}

/** Moves all that a job said back by so many hours, and has its check look at it. */
async function age(name: string, hours: number): Promise<void> {
  await query(
    `update ops.checks
        set beat_at = beat_at - interval '${hours} hours', begun_at = begun_at - interval '${hours} hours',
            next_at = now()
      where name = '${name}'`,
  )
}

await t.test('a job that has never called is unknown', async () => {
  await says('backup', /its job has not called yet; let it call its address/)
})

await t.test('each method and each word of a job', async (t) => {
  for (const method of ['GET', 'POST', 'HEAD']) {
    const answer = await call(`/beat/${tokens.backup}`, { method })
    t.match(answer, { status: 200, text: method === 'HEAD' ? '' : 'ok\n' })
  }
  await says('backup', /^called \d+ s ago$/)
  await call(`/beat/${tokens.backup}/fail`)
  await says('backup', /^its job failed \d+ s ago$/)
  await call(`/beat/${tokens.backup}/start`)
  await says('backup', /^began \d+ s ago$/)
  await call(`/beat/${tokens.backup}`, { method: 'POST' })
  await says('backup', /^called \d+ s ago, took \d+ s$/)
  await call(`/beat/${tokens.report}`)
  await says('report', /^called \d+ s ago$/)
  const messages = (await eventsOf(ops)).map(({ message }) => message).toReversed()
  const told = messages.filter((message) => /^(backup|report)\b/.test(message))
  t.match(told, [
    /^backup is unknown: /,
    /^report is unknown: /,
    /^backup is known again: called/,
    /^backup: its job failed/,
    /^backup is good again: began/,
    /^report is known again: called/,
  ])
})

await t.test('silence, and an end that does not come, are failures', async () => {
  await age('backup', 24)
  await says('backup', /^called 1 d 0 h ago, took/)
  await age('backup', 2)
  await says('backup', /^no call for 1 d 2 h, expected one every 24h$/)
  await call(`/beat/${tokens.backup}`)
  await says('backup', /^called \d+ s ago$/)
  await call(`/beat/${tokens.backup}/start`)
  await says('backup', /^began \d+ s ago$/)
  await age('backup', 2)
  await says('backup', /^began 2 h 0 min ago and has not ended, expected 1 h 0 min$/)
})

await t.test('what is no address of a heartbeat', async (t) => {
  const before = await query(`select beat_at, begun_at from ops.checks order by id`)
  for (const [path, status, method] of [
    [`/beat/${tokens.backup}x`, 404],
    ['/beat/', 404],
    [`/beat/${'x'.repeat(4_000)}`, 404],
    [`/beat/${tokens.backup}/stop`, 404],
    [`/beat/${tokens.backup}`, 405, 'PUT'],
    [`/beat/${tokens.backup}`, 405, 'DELETE'],
    ['/beat/%00', 404],
  ] as const) {
    t.match(await call(path, { method: method ?? 'GET' }), { status }, `${method ?? ''} ${path}`)
  }
  t.same(await query(`select beat_at, begun_at from ops.checks order by id`), before)
  t.notMatch(ops.server.logs().join('\n'), tokens.backup, 'no token is in the log')
})

await t.test('a monitor elsewhere is called while checks run', async (t) => {
  let status = 500
  const key = secret('monitor')
  const monitor = await startReceiver(t, (_, response) => void response.writeHead(status).end())
  const GATEHOUSE_HEARTBEAT_URL = `${monitor.url}?key=${key}`
  const watched = () => startOps(t, postgres, { ...env, OPS_INVENTORY, GATEHOUSE_HEARTBEAT_URL })
  const failing = await watched()
  const line = await until(
    async () => failing.server.logs().find((text) => text.includes('heartbeat not taken')),
    'the log to say that the monitor fails',
  )
  t.match(JSON.parse(line), { level: 'warn', error: 'it answered 500' })
  t.notMatch(failing.server.logs().join(), key)
  status = 200
  const before = monitor.received.length
  const good = await watched()
  await until(async () => monitor.received.length > before, 'the call')
  t.match(monitor.received.at(-1), { method: 'GET', path: `/?key=${key}` })
  t.notMatch(good.server.logs().join(), /heartbeat not taken/)
  t.match((await request(`${good.base}/healthz`)).json(), { status: 'ok' })
})
