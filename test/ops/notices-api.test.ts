import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { startProbe } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { refuseAll } from '../helpers/refusals.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

type Send = { readonly target: string; readonly number: number; readonly sent_at: string | null }
type Notice = {
  readonly id: number
  readonly message: string
  readonly lasts: boolean
  readonly ended_at: string | null
  readonly acknowledged_by: string | null
  readonly url: string
  readonly sends: readonly Send[]
}
type Target = Readonly<Record<string, unknown>>
type Notices = { readonly notices: readonly Notice[] }

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
  const { api, base } = ops
  const add = ['notify', 'add', 'chat', `${receiver.url}/chat/${hidden}`]
  await runCli([...add, '--levels', 'critical', '--after', '12h'], { env: ops.env })
  const list = async (query = ''): Promise<readonly Notice[]> =>
    (await api<Notices>('GET', `/notices${query}`)).json.notices
  const targets = async (): Promise<readonly Target[]> =>
    (await api<{ targets: readonly Target[] }>('GET', '/notices/targets')).json.targets
  const page = async (path: string): Promise<string> => (await fetch(base + path)).text()
  const paged = (): readonly { event_action: string; dedup_key: string; routing_key: string }[] =>
    receiver.received
      .filter(({ path }) => path === '/v2/enqueue')
      .map(({ body }) => JSON.parse(body.toString()))

  await t.test('nothing so far', async (t) => {
    t.same(await list(), [])
    t.match(await targets(), [
      { name: 'OPS_NOTIFY_URL', kind: 'json', taken_at: null, waiting: 0, problem: null },
      { name: 'OPS_NOTIFY_URL 2', kind: 'pagerduty' },
      { name: 'chat', kind: 'json', levels: ['critical'], after_s: 43_200 },
    ])
    t.match(await page('/notices'), /Nothing lasts now\.[\s\S]*No notices yet\./)
  })

  const file = join(await temporaryFolder(t, 'told'), 'there')
  await ops.lookAt([
    { type: 'file_age', name: 'file', path: file, max_age_s: 3_600, level: 'critical' },
  ])
  const [notice] = await until(async () => {
    const all = await list('?lasting=true')
    return all[0]?.sends.some(({ sent_at }) => sent_at !== null) === true && all
  }, 'a notice that one target has taken')
  const id = notice?.id ?? 0

  await t.test('what lasts, what each target got, and why one did not take it', async (t) => {
    t.match(notice, { message: /^file: no such file/, lasts: true, ended_at: null })
    t.match(notice?.url, `${base}/checks/1`)
    await until(async () => (await targets())[0]?.['problem'] !== null, 'the problem')
    const { host } = new URL(receiver.url)
    t.match(await targets(), [
      { host, problem: 'the receiver answered 503', waiting: 1, taken_at: null },
      { host, problem: null, waiting: 0, taken_at: /Z$/, failing_since: null },
      { host, problem: null, waiting: 0, taken_at: null },
    ])
    const text = await page('/notices')
    t.match(text, /Lasts now[\s\S]*file: no such file[\s\S]*Targets[\s\S]*Newest notices/)
    t.match(text, /OPS_NOTIFY_URL<\/bdi> <span class="badge bad">not taken/)
    t.match(text, /the receiver answered 503; waiting: 1 notice/)
    t.match(text, /all services; critical; after 12h/)
    t.match(await page('/waiting'), /href="\/notices"/)
    const all = [text, JSON.stringify(await targets()), JSON.stringify(await list())].join('')
    t.notMatch(all, hidden, 'no address beyond its host')
    t.notMatch(all, routing)
  })

  await t.test(
    'acknowledged by the API: the first one counts, and PagerDuty hears it',
    async (t) => {
      const path = `/notices/${id}/acknowledge`
      const first = await api<Notice>('POST', path)
      t.match(first, { status: 200, json: { id, acknowledged_by: 'operator' } })
      const again = await api<Notice>('POST', path)
      t.same([again.status, again.json.acknowledged_by], [200, 'operator'])
      await until(() => paged().length >= 2, 'the acknowledgement')
      writeFileSync(file, '')
      await ops.look()
      await until(() => paged().length >= 3, 'the end')
      const sent = paged().map(({ event_action }) => event_action)
      t.same(sent, ['trigger', 'acknowledge', 'resolve'])
      t.equal(new Set(paged().map(({ dedup_key }) => dedup_key)).size, 1, 'one incident')
      t.ok(paged().every(({ routing_key }) => routing_key === routing))
      t.match(await page(`/notices/${id}`), /OPS_NOTIFY_URL 2<\/bdi>, that it is acknowledged/)
      t.same(await list('?lasting=true'), [])
      t.equal((await list('?limit=1')).length, 1)
      const audit = await postgres.query(
        ops.env,
        `select subject from audit.changes where action = 'notice acknowledge'`,
      )
      t.same(audit, [{ subject: String(id) }], 'one line')
    },
  )

  await t.test('a target that takes notices again does not look as if it failed', async (t) => {
    refused = 200
    await postgres.query(ops.env, 'update notices.sends set next_at = now() where sent_at is null')
    await until(async () => (await targets())[0]?.['taken_at'] !== null, 'a notice to be taken')
    t.match(await targets(), [{ problem: null, waiting: 0, failing_since: null }, {}, {}])
  })

  await t.test('a notice of a service that runs elsewhere leads to its own page', async (t) => {
    await postgres.query(
      ops.env,
      `insert into notices.notices (service, level, message, site, path, created_at)
       values ('hooks', 'critical', 'silent', 'hooks', '/providers', now())`,
    )
    const [first] = await list('?limit=1')
    t.match(first, { message: 'silent', url: `${base}/notices/${first?.id}` })
  })

  await t.test('what is refused', (t) =>
    refuseAll(t, { service: 'ops', base, state: () => list() }, [
      ['GET /api/v1/notices?lasting=maybe', 400, undefined, /lasting must be true or false/],
      ['GET /api/v1/notices?limit=-1', 400, undefined, /limit/],
      ['GET /api/v1/notices?limit=1&limit=2', 400, undefined, /once/],
      ['POST /api/v1/notices/x/acknowledge', 400, undefined, /the notice id must be an integer/],
      ['POST /api/v1/notices/999999/acknowledge', 404, undefined, 'notice not found'],
      ['GET /api/v1/notices/targets/more', 404],
      [
        {
          call: `POST /api/v1/notices/${id}/acknowledge`,
          headers: { 'sec-fetch-site': 'cross-site' },
        },
        403,
      ],
      [{ call: 'GET /api/v1/notices/targets', headers: { host: 'evil.example' } }, 403],
    ]),
  )
})
