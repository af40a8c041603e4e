import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { claudeResult, makeAgent } from '../helpers/agents.ts'
import { postgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { ended, listOf, runSession, startOps, startProbe } from '../helpers/ops.ts'
import { calm } from '../helpers/notices.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { expectStatus, refuseAll, type Refusal } from '../helpers/refusals.ts'
import { startReceiver, type Receiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'
import { until } from '../helpers/until.ts'

type Row = Readonly<Record<string, unknown>>
type Listed = {
  id: number
  url: string
  acknowledged_by: string | null
  sends: readonly { sent_at: string | null }[]
}

/** It fails, as a critical one. */
const DOOR = { type: 'process', name: 'door', match: 'no process has this in its command line' }

function bodies({ received }: Receiver, from = 0) {
  return received.slice(from).map(({ body }): Row => JSON.parse(body.toString()))
}

/** Waits for what costs a request to see. */
const untilSeen = (condition: () => Promise<boolean>, what: string) =>
  until(condition, what, 30_000, 250)

await t.test('notices of one probe', async (t) => {
  let status = 200
  const receiver = await startReceiver(t, (_request, response) => {
    response.writeHead(status).end()
  })
  const ops = await startProbe(t, { OPS_NOTIFY_URL: `${receiver.url}/notices` })
  await calm(ops.env)
  const folder = await temporaryFolder(t, 'checked')
  const listed: object[] = []
  /** Looks at these, too: what the inventory loses would be told to be over. */
  const lookAt = (checks: readonly object[]) => {
    listed.push(...checks)
    return ops.lookAt(listed)
  }
  /** Waits until so many more notices have come than at first, and gives those. */
  const told = (count: number, first: number) =>
    until(() => {
      const found = bodies(receiver, first)
      return found.length >= count && found
    }, `${count} notices`)
  const said = (text: string) => ops.server.logs().filter((line) => line.includes(text)).length
  const count = async (outcome: string) => {
    const counted = new RegExp(`notices_total\\{outcome="${outcome}"\\} (\\d+)\n`).exec(
      await ops.page('/metrics'),
    )
    return Number(counted?.[1] ?? 0)
  }

  await t.test('a critical check is told when it fails, and when it is good again', async (t) => {
    const first = receiver.received.length
    const file = join(folder, 'told')
    const checks = ['critical', 'warning'].map((level) => {
      return { type: 'file_age', name: `${level} file`, path: file, max_age_s: 3_600, level }
    })
    const begin = await lookAt(checks)
    await told(1, first)
    const during = await ops.look()
    writeFileSync(file, '')
    const good = await ops.look()
    const notices = await told(2, first)
    t.equal(notices.length, 2)
    const url = new RegExp(`^${ops.base}/checks/\\d+$`)
    const about = { kind: 'event', service: 'shop', created_at: /^\d{4}-\d\d-\d\dT.*Z$/, url }
    t.match(notices, [
      { ...about, session_id: begin.session.id, message: 'critical file: no such file' },
      { ...about, session_id: good.session.id, message: 'critical file is good again: ' },
    ])
    t.match(receiver.received[0], {
      method: 'POST',
      path: '/notices',
      headers: { 'content-type': 'application/json', 'idempotency-key': /^notice-\d+$/ },
    })
    const events = [begin, during, good].map((found) => found.events.length)
    t.same(events, [2, 0, 2], 'what changes is an event')
  })

  await t.test('a notice that is not taken is tried again until it is', async (t) => {
    const first = receiver.received.length
    const [sent, failed] = [await count('sent'), await count('failed')]
    status = 503
    await lookAt([{ ...DOOR, name: 'other door' }])
    await told(1, first)
    await untilSeen(async () => (await count('failed')) === failed + 1, 'the failure')
    t.ok(said('receiver answered 503') > 0)
    const unsent = /could not be sent[^]*the receiver answered 503/
    const isUnsent = async () => unsent.test(await ops.page('/waiting'))
    await untilSeen(isUnsent, 'the dashboard to say so')
    status = 200
    // As if the ten seconds were over after which it is tried again.
    await ops.query(
      `update notices.sends set next_at = next_at - interval '10 s' where sent_at is null`,
    )
    await told(2, first)
    const keys = receiver.received.slice(first).map(({ headers }) => headers['idempotency-key'])
    t.equal(keys[0], keys[1], 'the same notice')
    await untilSeen(async () => (await count('sent')) === sent + 1, 'the second try')
    await until(() => said('notices are taken again') > 0, 'the log to say so')
    t.equal(await count('failed'), failed + 1)
    await untilSeen(async () => !(await isUnsent()), 'nothing to be unsent')
  })

  await t.test('one that was not taken for days is sent all the same', async (t) => {
    const first = receiver.received.length
    const [failed, logged] = [await count('failed'), said('notice not taken')]
    const tried = (times: number) =>
      untilSeen(async () => (await count('failed')) === failed + times, `${times} tries`)
    status = 503
    await lookAt([{ ...DOOR, name: 'third door' }])
    await tried(1)
    const due = `update notices.sends set next_at = now() where sent_at is null;
      update notices.notices n set created_at = now() - interval '8 days'
       where exists (select from notices.sends s where s.notice_id = n.id and s.sent_at is null)`
    await ops.query(due)
    await tried(2)
    t.equal(said('notice not taken'), logged + 1, 'the log says it once')
    await ops.server.stop()
    // Nobody was there to take this one.
    await ops.query(
      `insert into notices.notices (service, level, message, site, path, created_at)
       values ('shop', 'critical', 'old', 'ops', '/events', now() - interval '8 days')`,
    )
    await ops.query('update notices.sends set next_at = now()')
    status = 200
    const again = await startOps(t, postgres, ops.env)
    const message = 'third door'
    t.match(await told(3, first), [{ message }, { message }, { message }])
    const unsent = `select count(*)::int as count from notices.notices where message = 'old'`
    const isEmpty = async () => (await ops.query(unsent))[0]?.['count'] === 0
    await until(isEmpty, 'the notice that nobody was there to take to be removed')
    await again.server.stop()
  })
})

await t.test('notices of an agent', async (t) => {
  const receiver = await startReceiver(t)
  const hanging = await startReceiver(t, () => undefined)
  const agent = await makeAgent(t)
  agent.says([claudeResult()])
  const ops = await startOps(t, postgres, {
    OPS_RUNNER: 'cli',
    OPS_AGENT_COMMAND: agent.command,
    OPS_FIRST_OUTPUT_S: '5',
    OPS_NOTIFY_URL: `${hanging.url} ${receiver.url}`,
  })
  await ended(ops)
  await calm(ops.env)

  await t.test('five events of a session are told, and no words twice', async (t) => {
    const report = async (...messages: readonly string[]) => {
      const events = messages.map((message) =>
        agent.calls('record_event', { level: 'critical', service: 'garage', message }),
      )
      agent.does(`${events.join('\n')}\n${agent.prints(claudeResult())}\n`)
      await runSession(ops)
    }
    await report(...Array.from({ length: 7 }, (_, at) => `door ${at} is open`))
    await report('door 1 is open', 'door 6 is open')
    await until(() => receiver.received.length >= 6, 'six notices')
    t.same(
      bodies(receiver).map(({ message }) => message),
      [...[0, 1, 2, 3, 4].map((at) => `door ${at} is open`), 'door 6 is open'],
    )
    t.equal((await listOf(ops, 'events?level=critical')).length, 9, 'all of them are recorded')
    t.ok(hanging.received.length > 0, 'a target that hangs holds up no other')
  })

  await t.test('a session that failed, or ran out of time, is told with the reason', async (t) => {
    const late = String.raw`timed_out: it gave no output within \d+ s \(OPS_FIRST_OUTPUT_S\)`
    for (const [script, status, reason] of [
      [undefined, 'failed', 'failed: \\S'],
      ['sleep 60', 'timed_out', late],
    ] as const) {
      const first = receiver.received.length
      if (script === undefined) rmSync(join(agent.folder, 'agent.sh'))
      else agent.does(script)
      const session = await runSession(ops)
      t.equal(session.status, status)
      await until(() => receiver.received.length > first, 'the notice')
      const about = { kind: 'session', session_id: session.id, service: 'gatehouse' }
      const message = new RegExp(`^Session ${session.id} ${reason}`)
      t.match(bodies(receiver, first), [{ ...about, level: 'critical', message }])
    }
  })
})

await t.test('a wrong address stops the start with one line', async (t) => {
  t.match(await runCli(['migrate'], { env: { OPS_NOTIFY_URL: 'http://x/ x' } }), {
    code: 1,
    stderr: /^gatehouse: OPS_NOTIFY_URL is not valid .*expected an http:\/\//,
  })
})

await t.test('notices and their targets: page, API, PagerDuty', async (t) => {
  const hidden = secret('notices-api')
  const routing = secret('routing-key')
  let refused = 503
  const receiver = await startReceiver(t, ({ path }, response) => {
    response.writeHead(path.startsWith('/refuses') ? refused : 202).end()
  })
  const pager = `${receiver.url}/v2/enqueue`
  const ops = await startProbe(t, {
    GATEHOUSE_SECRET_KEY: secretKey(),
    OPS_NOTIFY_URL: `${receiver.url}/refuses/${hidden} pagerduty+${pager}?routing_key=${routing}`,
  })
  const { api, base, page } = ops
  await calm(ops.env)
  const add = ['notify', 'add', 'chat', `${receiver.url}/chat/${hidden}`]
  await runCli([...add, '--levels', 'critical', '--after', '12h'], { env: ops.env })
  const list = (query = '') => listOf<Listed>(ops, `notices${query}`)
  const targets = async () =>
    (await api<{ targets: readonly Row[] }>('GET', '/notices/targets')).json.targets
  const paged = () => bodies(receiver).filter(({ dedup_key }) => dedup_key !== undefined)

  await t.test('nothing so far', async (t) => {
    t.same(await list(), [])
    t.match(await page('/notices'), /Nothing lasts now\.[^]*No notices yet\./)
  })

  const file = join(await temporaryFolder(t, 'told'), 'there')
  const about = { type: 'file_age', name: 'file', path: file, max_age_s: 3_600 }
  await ops.lookAt([{ ...about, level: 'critical' }])
  const [notice] = await until(
    async () => {
      const all = await list('?lasting=true')
      return all[0]?.sends.some(({ sent_at }) => sent_at !== null) === true && all
    },
    'a notice that one target has taken',
    30_000,
    250,
  )
  const id = notice?.id ?? 0

  await t.test('what lasts, what each target got, and why one did not take it', async (t) => {
    t.match(notice, { message: 'file: no such file', lasts: true, ended_at: null })
    t.match(notice?.url, new RegExp(`^${base}/checks/\\d+$`))
    await until(async () => (await targets())[0]?.['problem'] !== null, 'the problem')
    const { host } = new URL(receiver.url)
    t.match(await targets(), [
      { name: 'OPS_NOTIFY_URL', host, problem: 'the receiver answered 503', waiting: 1 },
      { kind: 'pagerduty', problem: null, waiting: 0, taken_at: 'Z', failing_since: null },
      { name: 'chat', levels: ['critical'], after_s: 43_200, waiting: 0, taken_at: null },
    ])
    const text = await page('/notices')
    t.match(text, /Lasts now[^]*file: no such file[^]*Targets[^]*Newest notices/)
    t.match(text, 'OPS_NOTIFY_URL</bdi> <span class="badge bad">not taken')
    t.match(text, 'the receiver answered 503; waiting: 1 notice')
    t.match(text, 'all services; critical; after 12h')
    const all = [text, JSON.stringify(await targets()), JSON.stringify(await list())].join('')
    t.notMatch(all, hidden, 'no address beyond its host')
    t.notMatch(all, routing)
    t.notMatch(ops.server.logs().join(), hidden)
  })

  await t.test(
    'acknowledged by page or API: looking changes nothing, the first one counts, PagerDuty hears it',
    async (t) => {
      const link = `/notices/${id}`
      const path = `${link}/acknowledge`
      const by = async () => (await list('?lasting=true'))[0]?.acknowledged_by
      t.match(await page(link), /file: no such file[^]*>Acknowledge<\/button>/)
      await expectStatus(405, request(base + path), 'a GET acknowledges nothing')
      const press = (headers = {}) => request(base + path, { method: 'POST', headers })
      await expectStatus(403, press({ 'sec-fetch-site': 'cross-site' }))
      t.equal(await by(), null)
      await expectStatus(303, press())
      t.equal(await by(), 'operator')
      t.match(await page(link), /Acknowledged[^]*by <bdi>operator<\/bdi>/)
      await expectStatus(404, request(`${base}/notices/999999`))
      const again = await api('POST', path)
      t.match(again, { status: 200, json: { acknowledged_by: 'operator' } })
      await until(() => paged().length >= 2, 'the acknowledgement')
      writeFileSync(file, '')
      await ops.look()
      await until(() => paged().length >= 3, 'the end')
      const sent = paged().map(({ event_action }) => event_action)
      t.same(sent, ['trigger', 'acknowledge', 'resolve'])
      t.equal(new Set(paged().map(({ dedup_key }) => dedup_key)).size, 1, 'one incident')
      t.ok(paged().every(({ routing_key }) => routing_key === routing))
      t.match(await page(link), 'OPS_NOTIFY_URL 2</bdi>, that it is acknowledged')
      t.same(await list('?lasting=true'), [])
      const audit = await ops.query(
        `select subject from audit.changes where action = 'notice acknowledge'`,
      )
      t.same(audit, [{ subject: String(id) }], 'one line')
    },
  )

  await t.test('a target that takes notices again does not look as if it failed', async (t) => {
    refused = 200
    await ops.query('update notices.sends set next_at = now() where sent_at is null')
    await untilSeen(async () => (await targets())[0]?.['taken_at'] !== null, 'a notice')
    t.match(await targets(), [{ problem: null, waiting: 0, failing_since: null }, {}, {}])
  })

  await t.test('a notice of a service that runs elsewhere leads to its own page', async (t) => {
    await ops.query(
      `insert into notices.notices (service, level, message, site, path, created_at)
       values ('hooks', 'critical', 'silent', 'hooks', '/providers', now())`,
    )
    const [first] = await list('?limit=1')
    t.match(first, { message: 'silent', url: `${base}/notices/${first?.id}` })
  })

  /** Without what was sent of them: that goes on meanwhile. */
  const acknowledged = async () =>
    (await list()).map(({ id, acknowledged_by }) => ({ id, acknowledged_by }))

  await t.test('what is refused', (t) =>
    refuseAll(t, { service: 'ops', base, state: acknowledged }, [
      ...(
        [
          ['GET /api/v1/notices?lasting=maybe', 400, 'lasting must be true or false'],
          ['GET /api/v1/notices?limit=-1', 400, 'limit must be a non-negative integer'],
          ['GET /api/v1/notices?limit=1&limit=2', 400, 'limit may be given once.'],
          ['POST /api/v1/notices/x/acknowledge', 400, 'the notice id must be an integer'],
          ['POST /api/v1/notices/999999/acknowledge', 404, 'notice not found'],
        ] as const
      ).map(([call, status, text]): Refusal => [call, status, undefined, text]),
      ['GET /api/v1/notices/targets/more', 404],
      [{ call: 'GET /api/v1/notices/targets', headers: { host: 'evil.example' } }, 403],
    ]),
  )
})
