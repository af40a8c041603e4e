import { t } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { ANN, auditOf, changesLeave, command, PROXIED } from '../helpers/audit.ts'
import { postgres } from '../helpers/backends.ts'
import { postForm, startHooks, store } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { nextOf } from '../helpers/links.ts'
import { addEndpoint, callTool } from '../helpers/mcp.ts'
import { expectStatus, refuseAll } from '../helpers/refusals.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

/** Answers to deliveries that wait until the test lets them go. */
const held: (() => unknown)[] = []
const receiver = await startReceiver(t, ({ path }, response) => {
  const answer = () => response.writeHead(204).end()
  if (path === '/held') held.push(answer)
  else answer()
})
const { base, env } = await startHooks(t, postgres, {
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
})
const proxied = (await startServer(t, { services: ['hooks'], env: { ...env, ...PROXIED } })).hooks
const token = secret('token-of-a-target')
const url = `${receiver.url}/onwards?token=${token}`
const shown = `${receiver.url}/onwards?…`

/** A form, as a program posts it: by the operator of this machine, or by whom the proxy names. */
const form = (path: string, fields = {}, status = 200) =>
  expectStatus(status, postForm(base, path, fields))
const formAs = (user: Readonly<Record<string, string>>, path: string, fields = {}, status = 200) =>
  expectStatus(status, postForm(proxied, path, fields, user))
const api = apiOf(base)

t.match((await request(`${base}/audit`)).text, 'No changes yet.')

await t.test(
  'providers, endpoints and settings: each change, by each kind of actor',
  async (t) => {
    const off = { enabled: 'false' }
    const path = '/providers/chat/enabled'
    const run = (...words: readonly string[]) => command(env, 0, ...words)
    await changesLeave(t, env, 'hooks', [
      ['add', () => form('/providers', { name: 'ci' }), 'operator: provider add generic:ci'],
      ['of a user', () => formAs(ANN, path, off), 'ann@example.com: provider disable chat'],
      ['of nobody', () => formAs({}, path, off), 'anonymous: provider disable chat'],
      [
        'a user who is named like another actor',
        () => formAs({ 'Remote-Email': 'operator' }, path, { enabled: 'true' }),
        'user operator: provider enable chat',
      ],
      [
        'answers',
        () => form('/providers/generic:ci/answers', { methods: 'GET' }),
        'operator: provider set generic:ci',
      ],
      [
        'rotate',
        () => form('/providers/generic:ci/rotate', { overlap: '0' }),
        'operator: provider rotate generic:ci',
      ],
      [
        'remove',
        () => form('/providers/generic:ci/remove'),
        'operator: provider remove generic:ci',
      ],
      [
        'command',
        () => run('provider', 'add', 'lan', '--open', '--enable'),
        'command: provider add generic:lan',
      ],
      [
        'command: alarm',
        () => run('provider', 'alarm', 'lan', '--off'),
        'command: provider alarm generic:lan',
      ],
      [
        'endpoint',
        () => form('/settings/endpoints', { name: 'spare' }),
        'operator: endpoint add spare',
      ],
      ['revoke', () => run('endpoint', 'revoke', 'spare'), 'command: endpoint revoke spare'],
      [
        'settings: those that differ',
        () => form('/settings', { sse_retry_ms: '4000', retention_max_rows: '50000' }),
        'operator: settings change sse_retry_ms',
      ],
      ['settings: nothing differs', () => form('/settings', { sse_retry_ms: '4000' })],
      [
        'forwarder',
        async () => {
          await postgres.query(env, `insert into hooks.forwarders values ('laptop', 0, 1, now())`)
          await form('/settings/forwarders/laptop/forget')
        },
        'operator: forwarder forget laptop',
      ],
      // Refusals.
      ['wrong', () => form('/providers', { name: 'A b' }, 422)],
      ['unknown', () => form('/providers/generic:none/enabled', off, 404)],
      ['command refused', () => command(env, 1, 'provider', 'add', 'lan')],
      ['another site', () => expectStatus(403, postForm(base, path, off, { Origin: 'http://x' }))],
    ])
  },
)

await t.test('destinations: each change, on its faces', async (t) => {
  const call = (status: number, method: string, path: string, body?: object) =>
    expectStatus(status, api(method, `/destinations${path}`, body))
  await changesLeave(t, env, 'hooks', [
    [
      'of a user',
      () => formAs(ANN, '/destinations', { name: 'erp', url }, 303),
      'ann@example.com: destination add erp',
    ],
    [
      'disable',
      () => form('/destinations/erp/enabled', { enabled: 'false' }),
      'operator: destination disable erp',
    ],
    ['retry', () => form('/destinations/erp/retry'), 'operator: destination retry erp'],
    [
      'test',
      () => form('/destinations/erp/test', { url }),
      `operator: destination test erp at ${shown}`,
    ],
    ['set', () => form('/destinations/erp', { url }), 'operator: destination set erp'],
    ['API: remove', () => call(204, 'DELETE', '/erp'), 'operator: destination remove erp'],
    ['API', () => call(201, 'POST', '', { name: 'erp', url }), 'operator: destination add erp'],
    ['API: set', () => call(200, 'PUT', '/erp', { url }), 'operator: destination set erp'],
    [
      'what it is sent by itself',
      async () => {
        const before = receiver.received.length
        await store(base, 'lan')
        await until(() => receiver.received.length > before, 'the delivery')
      },
    ],
    [
      'command: remove',
      () => command(env, 0, 'destination', 'remove', 'erp'),
      'command: destination remove erp',
    ],
    // Refusals.
    ['set of unknown', () => call(404, 'PUT', '/none', { url })],
    ['private', () => form('/destinations', { name: 'x', url: 'http://10.0.0.1/' }, 422)],
    ['command refused', () => command(env, 1, 'destination', 'remove', 'none')],
  ])
})

type Started = { highest_id: number; job: { id: string } }

await t.test('replays: by hand, by a token, by a tool, as a job', async (t) => {
  const agent = await addEndpoint(base, 'agent', { allow_replay: 'true' })
  const reader = await addEndpoint(base, 'reader')
  const program = apiOf(base, agent.token)
  const id = await store(base, 'lan')
  /** Starts a job with all events, and gives its id. */
  async function job(path: string) {
    const counted = await program<Started>('POST', '/events/replay', { dry_run: true })
    const { highest_id } = counted.json
    const wanted = { highest_id, target_url: receiver.url + path }
    return (await program<Started>('POST', '/events/replay', wanted)).json.job.id
  }
  let running = ''
  const target = { target_url: url }
  const again = `/events/${id}/replay`
  const line = `event replay event ${id} to ${shown}`
  await changesLeave(t, env, 'hooks', [
    ['form of a user', () => formAs(ANN, `/log/${id}/replay`, target), `ann@example.com: ${line}`],
    ['API', () => expectStatus(200, api('POST', again, target)), `operator: ${line}`],
    [
      'API, token',
      () => expectStatus(200, program('POST', again, target)),
      `token agent: ${line}`,
    ],
    [
      'tool',
      () => callTool(agent, 'replay_webhook_event', { id, ...target }),
      `token agent: ${line}`,
    ],
    [
      'job, and nothing for each of its events',
      async () => {
        running = await job('/yes')
        await until(async () => {
          const { json } = await program<{ state: string }>('GET', `/replay-jobs/${running}`)
          return json.state === 'finished'
        }, 'the job to end')
      },
      new RegExp(`^token agent: replay job start \\w{16} to ${receiver.url}/yes$`),
    ],
    [
      'job that a person cancels',
      async () => {
        running = await job('/held')
        await until(() => held.length > 0, 'its first event')
        await expectStatus(200, api('DELETE', `/replay-jobs/${running}`))
        for (const answer of held.splice(0)) answer()
      },
      /^token agent: replay job start /,
      /^operator: replay job cancel \w{16}$/,
    ],
    [
      'a job that has ended',
      () => expectStatus(200, program('DELETE', `/replay-jobs/${running}`)),
    ],
    // Refusals.
    ['no target', () => expectStatus(422, program('POST', again, {}))],
    ['no right', () => expectStatus(403, apiOf(base, reader.token)('POST', again, {}))],
    ['no such event', () => callTool(agent, 'replay_webhook_event', { id: 9999, ...target })],
    [
      'job to a private target',
      () => {
        const wanted = { highest_id: id, target_url: 'http://10.0.0.1/' }
        return expectStatus(422, program('POST', '/events/replay', wanted))
      },
    ],
  ])
  const texts = JSON.stringify(await auditOf(env, '--limit', '1000'))
  t.notMatch(texts, token, 'no line has the secret of a URL')
})

await t.test('the page has the changes of hooks, page by page', async (t) => {
  await postgres.query(
    env,
    `insert into audit.changes (actor, action, service, subject)
     select '<b>ann', 'provider add', case when i % 2 = 0 then 'hooks' else 'ops' end, 'generic:' || i
       from generate_series(1, 240) i`,
  )
  const subjects: number[] = []
  for (let next: string | undefined = '/audit'; next !== undefined;) {
    const { status, text } = await request(base + next)
    t.equal(status, 200, next)
    const rows = [...text.matchAll(/<bdi>generic:<wbr \/>(\d+)<\/bdi>/g)]
    subjects.push(...rows.map((match) => Number(match[1])))
    next = nextOf(text, 'audit-rows')
  }
  const even = Array.from({ length: 120 }, (_, at) => 240 - 2 * at)
  t.same(subjects, even, 'newest first, each once, none of another service')
  const { text } = await request(`${base}/audit`, { headers: { 'hx-request': 'true' } })
  t.match(text, /^<section id="audit".*&lt;b&gt;ann/s, 'htmx gets the rows alone')
  await refuseAll(t, { service: 'hooks', base, state: async () => 0 }, [
    ['GET /audit?before=x', 400],
    ['GET /audit?before=0', 400],
    ['POST /audit', 405],
  ])
})
