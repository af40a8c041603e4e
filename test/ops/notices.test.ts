import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { claudeResult, startAgentOps } from '../helpers/agent-setup.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { ended, inventoryFile, startOps, trigger } from '../helpers/ops-setup.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { rollbacks } from '../helpers/refused-rows.ts'
import { startReceiver } from '../helpers/receiver.ts'
import type { Received, Receiver } from '../helpers/receiver.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

type Notice = Readonly<Record<string, unknown>>

const [, postgres] = backends

/** An inventory whose only check fails as a critical one. */
function failing(t: Test): Promise<string> {
  const check = { type: 'process', name: 'door', match: 'no process has this in its command line' }
  return inventoryFile(t, { services: [{ name: 'garage', checks: [check] }] })
}

function bodies({ received }: Receiver): readonly Notice[] {
  return received.map(({ body }): Notice => JSON.parse(body.toString()))
}

await onPostgres(t, 'a critical event is told once', async (t: Test, backend) => {
  const receiver = await startReceiver(t)
  const env = { ...(await backend.env(t)), OPS_INVENTORY: await failing(t) }
  const url = `${receiver.url}/notices`
  const ops = await startOps(t, backend, { ...env, OPS_NOTIFY_URL: url })
  const session = await ended(ops)
  await until(() => receiver.received.length > 0, 'the notice')
  const [request] = receiver.received
  t.match(request, { method: 'POST', path: '/notices' })
  t.match(request?.headers, {
    'content-type': 'application/json',
    'idempotency-key': /^notice-\d+$/,
  })
  const [notice] = bodies(receiver)
  t.same(Object.keys(notice ?? {}).toSorted(), [
    ...['created_at', 'id', 'kind', 'level', 'message', 'service', 'session_id', 'url'],
  ])
  t.match(notice, {
    kind: 'event',
    session_id: session.id,
    level: 'critical',
    service: 'garage',
    message: /^door: no process/,
    created_at: /^\d{4}-\d\d-\d\dT.*Z$/,
    url: `${ops.base}/sessions/${session.id}`,
  })
})

t.test('a critical check that fails is told once, and once when it is good again', async (t) => {
  const receiver = await startReceiver(t)
  const file = join(await temporaryFolder(t, 'checked'), 'here')
  const checks = (['critical', 'warning'] as const).map((level) => {
    return { type: 'file_age', name: `${level} door`, path: file, max_age_s: 3_600, level }
  })
  const ops = await startOps(t, postgres, {
    OPS_INVENTORY: await inventoryFile(t, { services: [{ name: 'garage', checks }] }),
    OPS_NOTIFY_URL: receiver.url,
  })
  const told = (count: number): Promise<true> =>
    until(() => receiver.received.length === count, `notice ${count}`)
  await ended(ops)
  await told(1)
  const look = async (): Promise<number> => (await ended(ops, (await trigger(ops)).id)).id
  await look()
  writeFileSync(file, '')
  const good = await look()
  await told(2)
  await look()
  rmSync(file)
  const bad = await look()
  await told(3)
  t.match(bodies(receiver), [
    { session_id: 1, level: 'critical', message: /^critical door: no such file/ },
    { session_id: good, level: 'info', message: /^critical door is good again: written/ },
    { session_id: bad, level: 'critical', message: /^critical door: no such file/ },
  ])
  const { json } = await ops.api<{ events: readonly Notice[] }>('GET', '/events?service=garage')
  t.equal(json.events.length, 8, 'every session has its events')
})

t.test('who did not hear of the beginning hears of the end alone', async (t) => {
  let isAway = true
  const receiver = await startReceiver(t, (_request: Received, response) => {
    response.writeHead(isAway ? 503 : 200).end()
  })
  const file = join(await temporaryFolder(t, 'checked'), 'here')
  const check = { type: 'file_age', path: file, max_age_s: 3_600, level: 'critical' }
  const env = {
    ...(await postgres.env(t)),
    OPS_INVENTORY: await inventoryFile(t, { services: [{ name: 'garage', checks: [check] }] }),
    OPS_NOTIFY_URL: receiver.url,
  }
  const ops = await startOps(t, postgres, env)
  await ended(ops)
  await until(
    () => ops.server.logs().some((line) => /notice not taken/.test(line)),
    'the first try',
  )
  isAway = false
  writeFileSync(file, '')
  await ended(ops, (await trigger(ops)).id)
  await until(() => receiver.received.length > 1, 'the second notice')
  t.match(bodies(receiver)[1], { level: 'info', message: /is good again/ })
  const due = `select count(*)::int as due from ops.notices where sent_at is null`
  await until(async () => (await postgres.query(env, due))[0]?.['due'] === 0, 'nothing to be due')
})

t.test(
  'of what an agent records, five events of a session are told, and no words twice',
  async (t) => {
    const receiver = await startReceiver(t)
    const ops = await startAgentOps(t, postgres, { OPS_NOTIFY_URL: receiver.url })
    const report = async (...messages: readonly string[]): Promise<void> => {
      const events = messages.map((message) => ({ level: 'critical', service: 'garage', message }))
      ops.agent.says([claudeResult({ result: `Bad.\n${JSON.stringify({ events })}` })])
      await ended(ops, (await trigger(ops)).id)
    }
    await report(...Array.from({ length: 7 }, (_, at) => `door ${at} is open`))
    await report('door 1 is open', 'door 6 is open')
    await until(() => receiver.received.length >= 6, 'six notices')
    t.same(
      bodies(receiver).map(({ message }) => message),
      [...[0, 1, 2, 3, 4].map((at) => `door ${at} is open`), 'door 6 is open'],
    )
    const { json } = await ops.api<{ events: readonly Notice[] }>('GET', '/events?level=critical')
    t.equal(json.events.length, 9, 'all of them are recorded')
  },
)

t.test('a failed session is told, with the reason', async (t) => {
  const receiver = await startReceiver(t)
  const ops = await startOps(t, postgres, {
    OPS_NOTIFY_URL: receiver.url,
    OPS_RUNNER: 'cli',
    OPS_AGENT_COMMAND: '/nonexistent/agent',
  })
  const session = await ended(ops)
  t.equal(session.status, 'failed')
  await until(() => receiver.received.length > 0, 'the notice')
  t.match(bodies(receiver)[0], {
    kind: 'session',
    session_id: session.id,
    level: 'critical',
    service: 'gatehouse',
    message: new RegExp(`^Session ${session.id} failed: `),
  })
})

t.test('a notice that is not taken is tried again until it is', async (t) => {
  const answers = [503, 200]
  const receiver = await startReceiver(t, (_request: Received, response) => {
    response.writeHead(answers.shift() ?? 200).end()
  })
  const ops = await startOps(t, postgres, {
    OPS_INVENTORY: await failing(t),
    OPS_NOTIFY_URL: receiver.url,
  })
  await until(() => receiver.received.length === 1, 'the first try')
  await until(() => ops.server.logs().some((line) => /receiver answered 503/.test(line)), 'the log')
  await until(() => receiver.received.length === 2, 'the second try', 30_000)
  const keys = receiver.received.map(({ headers }) => headers['idempotency-key'])
  t.equal(keys[0], keys[1], 'the same notice')
  const metrics = await until(async () => {
    const text = await (await fetch(`${ops.base}/metrics`)).text()
    return /notices_total\{outcome="sent"\} 1\n/.test(text) ? text : undefined
  }, 'the second try to be counted')
  t.match(metrics, /notices_total\{outcome="failed"\} 1\n/)
})

t.test('an outage is logged once, and its end', async (t) => {
  const receiver = await startReceiver(t)
  const env = await postgres.env(t)
  const ops = await startOps(t, postgres, { ...env, OPS_NOTIFY_URL: receiver.url })
  await ended(ops)
  const before = await rollbacks(env)
  await postgres.query(env, 'alter table ops.notices rename to away')
  await until(async () => (await rollbacks(env)) > before + 2, 'three tries')
  await postgres.query(env, 'alter table ops.away rename to notices')
  const said = (text: string): number =>
    ops.server.logs().filter((line) => line.includes(`"msg":"${text}"`)).length
  await until(() => said('notices are looked up again') > 0, 'the end of the outage')
  t.same([said('notices not looked up'), said('notices are looked up again')], [1, 1])
})

t.test('ntfy gets the message, with title, priority and a link beside it', async (t) => {
  const receiver = await startReceiver(t)
  const ops = await startOps(t, postgres, {
    OPS_INVENTORY: await failing(t),
    OPS_NOTIFY_URL: `ntfy+${receiver.url}/my-topic`,
  })
  await until(() => receiver.received.length > 0, 'the notice')
  const [request] = receiver.received
  t.match(request, {
    method: 'POST',
    path: '/my-topic',
    headers: {
      title: 'Gatehouse: garage',
      priority: 'urgent',
      tags: 'critical',
      click: `${ops.base}/sessions/1`,
    },
  })
  t.match(request?.body.toString(), /^door: no process/)
})

t.test('the address never shows: it may hold a key', async (t) => {
  const receiver = await startReceiver(
    t,
    (_request, response) => void response.writeHead(500).end(),
  )
  const key = secret('notify')
  const ops = await startOps(t, postgres, {
    OPS_INVENTORY: await failing(t),
    OPS_NOTIFY_URL: `${receiver.url}/${key}`,
  })
  await until(() => ops.server.logs().some((line) => /notice not taken/.test(line)), 'the failure')
  t.notOk(ops.server.logs().some((line) => line.includes(key)))
})

t.test('a wrong address stops the start with one line', async (t) => {
  for (const url of ['nonsense', 'ftp://x/', 'http://u:p@x/', 'ntfy+https://ntfy.example/']) {
    const { code, stderr } = await runCli(['migrate'], { env: { OPS_NOTIFY_URL: url } })
    t.equal(code, 1, url)
    t.match(stderr, /^gatehouse: OPS_NOTIFY_URL is not valid .*expected an http:\/\//, url)
  }
})
