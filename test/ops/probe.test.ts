import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import { ended, inventoryFile, startOps, trigger } from '../helpers/ops-setup.ts'
import type { Event, Memory, OpsServer, Session } from '../helpers/ops-setup.ts'
import { freePort } from '../helpers/free-port.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { refuseRows } from '../helpers/refused-rows.ts'
import { until } from '../helpers/until.ts'

async function events({ api }: OpsServer): Promise<readonly Event[]> {
  return (await api<{ events: readonly Event[] }>('GET', '/events?limit=1000')).json.events
}

async function memories({ api }: OpsServer): Promise<readonly Memory[]> {
  return (await api<{ memories: readonly Memory[] }>('GET', '/memories')).json.memories
}

await eachBackend(
  t,
  'the session at the start, with nothing configured',
  async (t: Test, backend) => {
    const env = await backend.env(t)
    // Unset: this machine and our own services are its inventory.
    const ops = await startOps(t, backend, { ...env, OPS_INVENTORY: '' })
    const session = await ended(ops)
    t.match(session, { trigger: 'scheduled', status: 'completed', tier: 1, model: 'none' })
    t.match(session, { exit_code: 0, cost_usd: null, prompt_text: null, num_turns: null })
    const file = join(
      env['GATEHOUSE_DATA_DIR'] ?? '',
      'ops',
      'results',
      `session-${session.id}.ndjson`,
    )
    const lines = readFileSync(file, 'utf8').trim().split('\n')
    const text = lines.map((line): string => JSON.parse(line).text).join('\n')
    t.match(text, /^\d+ checks of 2 services$/m)
    t.match(text, /^ok {3}ops: health: answered 200 \(\d+ ms\)$/m)
    t.match(text, /host: memory: .*% of the memory used/)
    const observation = /^health usually answers within \d+ ms$/
    const known = { service: 'ops', category: 'timing', observation, confidence: 0.7, active: true }
    t.match(await memories(ops), [{ ...known, tier: 1, session_id: session.id }])
  },
)

await eachBackend(t, 'an inventory with something wrong', async (t: Test, backend) => {
  let status = 503
  const shop = await startReceiver(
    t,
    (_, response) => void response.writeHead(status).end('sold out'),
  )
  const dead = await freePort()
  const http = { type: 'http', name: 'front', url: shop.url, timeout_s: 30 }
  const inventory = {
    services: [
      { name: 'shop', checks: [http, { ...http, name: 'text', status: 503, contains: 'sold' }] },
      { name: 'db', checks: [{ type: 'tcp', host: '127.0.0.1', port: dead, timeout_s: 30 }] },
      {
        name: 'host',
        checks: [
          // Every disk uses more than that, and none more than all.
          { type: 'disk', name: 'full', path: '/', max_percent: 0.0001 },
          { type: 'disk', name: 'roomy', path: '/', max_percent: 100 },
          { type: 'file_age', path: '/nothing/here', max_age_s: 1, level: 'info' },
        ],
      },
    ],
  }
  const ops = await startOps(t, backend, { OPS_INVENTORY: await inventoryFile(t, inventory) })
  const session = await ended(ops)
  t.match(session, { status: 'completed', exit_code: 0 }, 'what it found is no failure of its own')
  const found = (await events(ops)).toSorted((a, b) => a.id - b.id)
  const one = { session_id: session.id }
  t.match(found, [
    {
      ...one,
      service: 'shop',
      level: 'critical',
      message: 'front: answered 503, expected 200 to 399',
    },
    {
      ...one,
      service: 'db',
      level: 'critical',
      message: `tcp 127.0.0.1:${dead}: connection refused`,
    },
    {
      ...one,
      service: 'host',
      level: 'warning',
      message: /^full: [\d.]+ % .* used, expected 0.0001 % at most$/,
    },
    { ...one, service: 'host', level: 'info', message: 'file_age /nothing/here: no such file' },
  ])
  t.equal(found.length, 4)
  const learned = await memories(ops)
  t.match(learned, [{ service: 'shop', observation: /^text usually answers within/ }])
  t.equal(learned.length, 1, 'only what is well has a usual time')

  status = 204
  const second = await trigger(ops)
  await ended(ops, second.id)
  const news = (await events(ops)).filter(({ session_id }) => session_id === second.id)
  const recovery = news.find(({ message }) => message.includes('good again'))
  t.match(recovery, {
    service: 'shop',
    level: 'info',
    message: 'front is good again: answered 204',
  })
  t.match(
    news
      .filter(({ service }) => service === 'shop')
      .map(({ level }) => level)
      .toSorted(),
    ['critical', 'info'],
    'the other check of it fails now',
  )
  const third = await trigger(ops)
  await ended(ops, third.id)
  const last = (await events(ops)).filter(({ session_id }) => session_id === third.id)
  t.notOk(
    last.some(({ message }) => message.includes('good again')),
    'a recovery is told once',
  )

  await ops.server.stop()
  const rows = await backend.query(ops.env, 'select summary from ops.sessions order by id')
  const summary = String(rows[0]?.['summary'])
  t.match(
    summary,
    /^4 of 6 checks failed: shop: front: answered 503, expected 200 to 399; db: tcp /,
  )
  t.match(summary, /; host: full: [^;]+; host: file_age \/nothing\/here: no such file\.$/)
})

await t.test(
  'a recovery whose event is not stored is told by the next session',
  async (t: Test) => {
    let status = 503
    const shop = await startReceiver(t, (_, response) => void response.writeHead(status).end())
    const check = { type: 'http', name: 'front', url: shop.url, timeout_s: 30 }
    const inventory = { services: [{ name: 'shop', checks: [check] }] }
    const ops = await startOps(t, backends[1], { OPS_INVENTORY: await inventoryFile(t, inventory) })
    await ended(ops)
    status = 204
    const accept = await refuseRows(
      ops.env,
      'insert on ops.events',
      "new.message like '%good again%'",
    )
    t.match(await ended(ops, (await trigger(ops)).id), { status: 'failed' })
    await accept()
    const { id } = await ended(ops, (await trigger(ops)).id)
    const told = (await events(ops)).filter(({ message }) => message.includes('good again'))
    t.match(told, [{ session_id: id, message: 'front is good again: answered 204' }])
  },
)

await t.test('a check that never answers ends by its deadline', async (t: Test) => {
  const silent = await startReceiver(t, () => undefined)
  const check = { type: 'http', name: 'silent', url: silent.url, timeout_s: 0.5, level: 'warning' }
  const inventory = { services: [{ name: 'slow', checks: [check] }] }
  const ops = await startOps(t, backends[1], { OPS_INVENTORY: await inventoryFile(t, inventory) })
  t.match(await ended(ops), { status: 'completed' })
  t.match(await events(ops), [{ level: 'warning', message: 'silent: no answer within 0.5 s' }])
})

await t.test(
  'a file that has become wrong changes nothing; a good one is read again',
  async (t: Test) => {
    const file = await inventoryFile(t, { services: [] })
    const ops = await startOps(t, backends[1], { OPS_INVENTORY: file })
    await ended(ops)
    writeFileSync(file, '{"services": [{"name": "x"}]}')
    await ended(ops, (await trigger(ops)).id)
    t.same(await events(ops), [])
    t.ok(ops.server.logs().some((line) => line.includes('file not re-read')))
    const check = { type: 'tcp', name: 'dead', host: '127.0.0.1', port: await freePort() }
    writeFileSync(file, JSON.stringify({ services: [{ name: 'x', checks: [check] }] }))
    await ended(ops, (await trigger(ops)).id)
    t.match(await events(ops), [{ service: 'x', message: /^dead: / }])
    const refusals = (): number =>
      ops.server.logs().filter((line) => line.includes('file not re-read')).length
    const before = refusals()
    writeFileSync(file, '{"services": [{"name": "x"}]}')
    await ended(ops, (await trigger(ops)).id)
    t.ok(refusals() > before, 'the same mistake after a good version is told again')
  },
)

await eachBackend(
  t,
  'memories: one of each check, and what is not renewed fades',
  async (t: Test, backend) => {
    const web = await startReceiver(t)
    const check = { type: 'http', name: 'web', url: web.url, timeout_s: 30 }
    const inventory = { services: [{ name: 'web', checks: [check] }] }
    const ops = await startOps(t, backend, { OPS_INVENTORY: await inventoryFile(t, inventory) })
    await ended(ops)
    for (let at = 0; at < 5; at++) {
      await ended(ops, (await trigger(ops)).id)
    }
    const timings = await memories(ops)
    t.equal(timings.length, 1, 'a check has one memory, however long it took')
    t.ok(timings.every(({ confidence }) => confidence >= 0.7 && confidence <= 1))

    await ops.server.stop()
    await backend.query(ops.env, 'delete from ops.memories')
    const insert = `insert into ops.memories (category, observation, confidence, active, created_at, updated_at, fades_at, tier)
    select 'c', v.name, v.confidence, true, now(), now(), now() + interval '37 days' - v.days * interval '1 day', 0
      from (values ('fresh', 0.7, 36), ('once', 0.7, 37), ('twice', 0.7, 44), ('rests', 0.4, 44), ('stays', 0.4, 37),
                   ('rounds', 0.3996, 37), ('gone', 0.1, 200)) v(name, confidence, days)`
    await backend.query(ops.env, insert)
    const later = await startOps(t, backend, ops.env)
    const faded = await until(async () => {
      const list = (await memories(later)).filter(({ category }) => category === 'c')
      return list.some(({ observation, active }) => observation === 'gone' && !active) && list
    }, 'memories to fade at the start')
    const now = Object.fromEntries(
      faded.map(({ observation, confidence, active }) => [observation, [confidence, active]]),
    )
    t.same(now, {
      ...{ fresh: [0.7, true], once: [0.6, true], twice: [0.5, true] },
      ...{ rests: [0.2, false], stays: [0.3, true], rounds: [0.3, true], gone: [0, false] },
    })
  },
)

await t.test(
  'sessions of the schedule come back each interval, ad-hoc ones do not move it',
  async (t: Test) => {
    const ops = await startOps(t, backends[1], { OPS_INTERVAL: '2' })
    await ended(ops)
    const own = await trigger(ops)
    await ended(ops, own.id)
    const list = await until(
      async () => {
        const { json } = await ops.api<{ sessions: readonly Session[] }>('GET', '/sessions')
        const scheduled = json.sessions.filter(({ trigger: by }) => by === 'scheduled')
        return scheduled.length >= 3 && scheduled
      },
      'three sessions of the schedule',
      30_000,
    )
    const [third = 0, , first = 0] = list.map(({ started_at }) => Date.parse(started_at))
    t.ok(third - first >= 3_000, 'two intervals lie between')
  },
)

await t.test('a turn of the schedule whose session can not begin is not lost', async (t: Test) => {
  const env = await backends[1].env(t)
  const accept = await refuseRows(env, 'insert on ops.sessions', 'true')
  const ops = await startOps(t, backends[1], env)
  const refused = () =>
    ops.server.logs().filter((line) => line.includes('scheduled session not started')).length
  await until(() => refused() >= 2, 'two starts that fail')
  await accept()
  t.match(await ended(ops), { trigger: 'scheduled', status: 'completed' })
})
