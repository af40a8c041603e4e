import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { claudeResult, makeAgent } from '../helpers/agents.ts'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { ended, inventoryFile, startOps, startProbe, trigger } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import type { Receiver } from '../helpers/replays.ts'
import { rollbacks } from '../helpers/outages.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

type Notice = Readonly<Record<string, unknown>>

const [, postgres] = backends
/** It fails, as a critical one. */
const DOOR = { type: 'process', name: 'door', match: 'no process has this in its command line' }

function bodies({ received }: Receiver, from = 0): readonly Notice[] {
  return received.slice(from).map(({ body }): Notice => JSON.parse(body.toString()))
}

await t.test('notices of one probe', async (t) => {
  let status = 200
  const receiver = await startReceiver(t, (_request, response) => {
    response.writeHead(status).end()
  })
  const ops = await startProbe(t, { OPS_NOTIFY_URL: `${receiver.url}/notices` })
  const folder = await temporaryFolder(t, 'checked')
  const listed: object[] = []
  /** Looks at these, too: what the inventory loses would be told to be over. */
  const lookAt = (checks: readonly object[]) => {
    listed.push(...checks)
    return ops.lookAt(listed)
  }
  /** Waits until so many more notices have come than at first, and gives those. */
  const told = (count: number, first: number): Promise<readonly Notice[]> =>
    until(() => {
      const found = bodies(receiver, first)
      return found.length >= count && found
    }, `${count} notices`)
  const fileCheck = (name: string, level: string, path: string): object => {
    return { type: 'file_age', name, path, max_age_s: 3_600, level }
  }
  const said = (text: string): number =>
    ops.server.logs().filter((line) => line.includes(text)).length
  const count = async (outcome: string): Promise<number> => {
    const text = await (await fetch(`${ops.base}/metrics`)).text()
    return Number(new RegExp(`notices_total\\{outcome="${outcome}"\\} (\\d+)\n`).exec(text)?.[1])
  }

  await t.test('a critical event is told once', async (t) => {
    const { session } = await lookAt([DOOR])
    const [notice] = await told(1, 0)
    const [request] = receiver.received
    t.match(request, { method: 'POST', path: '/notices' })
    t.match(request?.headers, {
      'content-type': 'application/json',
      'idempotency-key': /^notice-\d+$/,
    })
    t.same(Object.keys(notice ?? {}).toSorted(), [
      ...[
        'acknowledge_url',
        'begin_id',
        'created_at',
        'id',
        'kind',
        'lasts',
        'level',
        'message',
        'reminder',
      ],
      ...['service', 'session_id', 'url'],
    ])
    t.match(notice, {
      kind: 'event',
      session_id: session.id,
      level: 'critical',
      service: 'shop',
      message: /^door: no process/,
      created_at: /^\d{4}-\d\d-\d\dT.*Z$/,
      url: `${ops.base}/checks/1`,
    })
  })

  await t.test('a critical check is told when it fails, and when it is good again', async (t) => {
    const first = receiver.received.length
    const file = join(folder, 'told')
    const checks = ['critical', 'warning'].map((level) => fileCheck(`${level} file`, level, file))
    const begin = await lookAt(checks)
    await told(1, first)
    const during = await ops.look()
    writeFileSync(file, '')
    const good = await ops.look()
    await told(2, first)
    const after = await ops.look()
    rmSync(file)
    const bad = await ops.look()
    const notices = await told(3, first)
    t.equal(notices.length, 3)
    t.match(notices, [
      { session_id: begin.session.id, level: 'critical', message: /^critical file: no such file/ },
      { session_id: good.session.id, level: 'info', message: /^critical file is good again: / },
      { session_id: bad.session.id, level: 'critical', message: /^critical file: no such file/ },
    ])
    const events = [begin, during, good, after, bad].map((found) => found.events.length)
    t.same(events, [2, 0, 2, 0, 2], 'what changes is an event')
  })

  await t.test('who did not hear of the beginning hears of the end alone', async (t) => {
    const first = receiver.received.length
    const refused = said('notice not taken')
    const file = join(folder, 'missed')
    status = 503
    await lookAt([fileCheck('missed', 'critical', file)])
    await until(() => said('notice not taken') > refused, 'the first try')
    status = 200
    writeFileSync(file, '')
    await ops.look()
    t.match((await told(2, first))[1], { level: 'info', message: /^missed is good again/ })
    const due = `select count(*)::int as due from notices.sends s join notices.notices n on n.id = s.notice_id
      where sent_at is null and n.ended_at is null`
    const isDone = async () => (await postgres.query(ops.env, due))[0]?.['due'] === 0
    await until(isDone, 'nothing to be due')
  })

  await t.test('a notice that is not taken is tried again until it is', async (t) => {
    const first = receiver.received.length
    const [sent, failed] = [await count('sent'), await count('failed')]
    status = 503
    await lookAt([{ ...DOOR, name: 'other door' }])
    await told(1, first)
    await until(async () => (await count('failed')) === failed + 1, 'the failure to be counted')
    t.ok(said('receiver answered 503') > 0)
    const waiting = async (): Promise<string> => (await fetch(`${ops.base}/waiting`)).text()
    const unsent = /could not be sent[\s\S]*the receiver answered 503/
    await until(async () => unsent.test(await waiting()), 'the dashboard to say so')
    status = 200
    // As if the ten seconds were over after which it is tried again.
    const later = `update notices.sends
      set next_at = next_at - interval '10 s' where sent_at is null`
    await postgres.query(ops.env, later)
    await told(2, first)
    const keys = receiver.received.slice(first).map(({ headers }) => headers['idempotency-key'])
    t.equal(keys[0], keys[1], 'the same notice')
    await until(async () => (await count('sent')) === sent + 1, 'the second try to be counted')
    await until(() => said('notices are taken again') > 0, 'the log to say so')
    t.equal(await count('failed'), failed + 1)
    await until(async () => !unsent.test(await waiting()), 'nothing to be unsent')
  })

  await t.test('an outage is logged once, and its end', async (t) => {
    const before = await rollbacks(ops.env)
    await postgres.query(ops.env, 'alter table notices.notices rename to away')
    await until(async () => (await rollbacks(ops.env)) > before + 2, 'three tries')
    await postgres.query(ops.env, 'alter table notices.away rename to notices')
    const end = '"msg":"notices are looked up again"'
    await until(() => said(end) > 0, 'the end of the outage')
    t.same([said('"msg":"notices not looked up"'), said(end)], [1, 1])
  })

  await t.test('one that was not taken for days is sent all the same', async (t) => {
    const first = receiver.received.length
    const [failed, logged] = [await count('failed'), said('notice not taken')]
    const tried = (times: number) =>
      until(async () => (await count('failed')) === failed + times, `${times} tries`)
    status = 503
    await lookAt([{ ...DOOR, name: 'third door' }])
    await tried(1)
    const due = `update notices.sends set next_at = now() where sent_at is null;
      update notices.notices n set created_at = now() - interval '8 days'
       where exists (select from notices.sends s where s.notice_id = n.id and s.sent_at is null)`
    await postgres.query(ops.env, due)
    await tried(2)
    t.equal(said('notice not taken'), logged + 1, 'the log says it once')
    await ops.server.stop()
    // Nobody was there to take this one.
    await postgres.query(
      ops.env,
      `insert into notices.notices (service, level, message, site, path, created_at)
       values ('shop', 'critical', 'old', 'ops', '/events', now() - interval '8 days')`,
    )
    await postgres.query(ops.env, 'update notices.sends set next_at = now()')
    status = 200
    const again = await startOps(t, postgres, ops.env)
    const messages = (await told(3, first)).map(({ message }) => message)
    t.match(messages, [/^third door/, /^third door/, /^third door/])
    const unsent = `select count(*)::int as count from notices.notices where message = 'old'`
    const isEmpty = async () => (await postgres.query(ops.env, unsent))[0]?.['count'] === 0
    await until(isEmpty, 'the notice that nobody was there to take to be removed')
    await again.server.stop()
  })
})

await t.test('notices of an agent', async (t) => {
  const receiver = await startReceiver(t)
  const agent = await makeAgent(t)
  agent.says([claudeResult()])
  const ops = await startOps(t, postgres, {
    ...{ OPS_RUNNER: 'cli', OPS_AGENT_COMMAND: agent.command, OPS_NOTIFY_URL: receiver.url },
    OPS_FIRST_OUTPUT_S: '5',
  })
  await ended(ops)

  await t.test('five events of a session are told, and no words twice', async (t) => {
    const report = async (...messages: readonly string[]): Promise<void> => {
      const events = messages.map((message) =>
        agent.calls('record_event', { level: 'critical', service: 'garage', message }),
      )
      agent.does(`${events.join('\n')}\n${agent.prints(claudeResult())}\n`)
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
  })

  await t.test('a failed session is told, with the reason', async (t) => {
    rmSync(join(agent.folder, 'agent.sh'))
    const session = await ended(ops, (await trigger(ops)).id)
    t.equal(session.status, 'failed')
    await until(() => receiver.received.length > 6, 'the notice')
    t.match(bodies(receiver)[6], {
      kind: 'session',
      session_id: session.id,
      level: 'critical',
      service: 'gatehouse',
      message: new RegExp(`^Session ${session.id} failed: \\S`),
    })
  })

  await t.test('one that ran out of time is told, too', async (t) => {
    const first = receiver.received.length
    agent.does('sleep 60')
    const session = await ended(ops, (await trigger(ops)).id)
    t.equal(session.status, 'timed_out')
    await until(() => receiver.received.length > first, 'the notice')
    t.match(bodies(receiver, first), [
      {
        ...{ kind: 'session', session_id: session.id, level: 'critical', service: 'gatehouse' },
        message: /^Session \d+ timed_out: it gave no output within \d+ s \(OPS_FIRST_OUTPUT_S\)/,
      },
    ])
  })
})

await t.test(
  'ntfy: title, priority and link beside the message; no address in a log',
  async (t) => {
    const receiver = await startReceiver(t, (_request, response) => {
      response.writeHead(500).end()
    })
    // The address may hold a key.
    const key = secret('notify')
    const ops = await startOps(t, postgres, {
      OPS_INVENTORY: await inventoryFile(t, { services: [{ name: 'garage', checks: [DOOR] }] }),
      OPS_NOTIFY_URL: `ntfy+${receiver.url}/${key}`,
    })
    await until(
      () => ops.server.logs().some((line) => /notice not taken/.test(line)),
      'the failure',
    )
    t.notOk(ops.server.logs().some((line) => line.includes(key)))
    const [request] = receiver.received
    t.match(request, {
      method: 'POST',
      path: '/',
    })
    t.match(JSON.parse(String(request?.body)), {
      topic: key,
      title: 'Gatehouse: garage (critical)',
      message: /^door: no process/,
      priority: 5,
      tags: ['critical'],
      click: `${ops.base}/checks/1`,
    })
  },
)

await t.test('who acknowledges is shown, and looking changes nothing', async (t) => {
  const receiver = await startReceiver(t)
  const ops = await startProbe(t, { OPS_NOTIFY_URL: receiver.url })
  await ops.lookAt([DOOR])
  const [notice] = await until(() => receiver.received.length > 0 && bodies(receiver), 'a notice')
  const link = String(notice?.['acknowledge_url'])
  t.match(link, `${ops.base}/notices/`)
  const read = async (): Promise<string> => (await fetch(link)).text()
  const state = async (): Promise<unknown> => [
    ...(await postgres.query(ops.env, 'select acknowledged_by from notices.notices')),
  ]
  t.match(await read(), /door: no process[\s\S]*>Acknowledge<\/button>/)
  const get = await fetch(`${link}/acknowledge`)
  t.ok(get.status === 404 || get.status === 405, 'a GET acknowledges nothing')
  t.same(await state(), [{ acknowledged_by: null }])
  const press = (more: object): Promise<Response> =>
    fetch(`${link}/acknowledge`, { method: 'POST', redirect: 'manual', ...more })
  const forged = await press({ headers: { 'sec-fetch-site': 'cross-site' } })
  t.equal(forged.status, 403, 'another site presses nothing')
  t.same(await state(), [{ acknowledged_by: null }])
  t.equal((await press({})).status, 303)
  t.same(await state(), [{ acknowledged_by: 'operator' }])
  const shown = await read()
  t.match(shown, /Acknowledged[\s\S]*by <bdi>operator<\/bdi>/)
  t.notMatch(shown, />Acknowledge<\/button>/)
  t.match(shown, /OPS_NOTIFY_URL[\s\S]*sent/)
  t.equal((await fetch(`${ops.base}/notices/999999`)).status, 404)
})

await t.test('of several targets, one that hangs holds up no other', async (t) => {
  const hanging = await startReceiver(t, () => undefined)
  const receiver = await startReceiver(t)
  const targets = `${hanging.url}/hangs ${receiver.url}/works`
  const ops = await startOps(t, postgres, { OPS_NOTIFY_URL: targets })
  const events = (count: number): Promise<unknown> =>
    postgres.query(
      ops.env,
      `insert into notices.notices (service, level, message, site, path, created_at)
       select 'shop', 'critical', 'event ' || n, 'ops', '/events', now() from generate_series(1, ${count}) n`,
    )
  await events(1)
  await until(() => hanging.received.length === 1, 'a request that is not answered')
  await events(3)
  await until(() => receiver.received.length === 4, 'all notices at the other one')
  t.equal(hanging.received.length, 1)
  await ops.server.stop()
  t.notOk(ops.server.logs().some((line) => /hangs|works/.test(line)))
})

await t.test('a wrong address stops the start with one line', async (t) => {
  for (const url of [
    'nonsense',
    'ftp://x/',
    'http://u:p@x/',
    'ntfy+https://ntfy.example/',
    ' ',
    'http://x/ x',
  ]) {
    const { code, stderr } = await runCli(['migrate'], { env: { OPS_NOTIFY_URL: url } })
    t.equal(code, 1, url)
    t.match(stderr, /^gatehouse: OPS_NOTIFY_URL is not valid .*expected an http:\/\//, url)
  }
})
