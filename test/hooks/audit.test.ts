import { t } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { ANN, answers, auditOf, changesLeave, command, PROXIED } from '../helpers/audit.ts'
import { backends } from '../helpers/backends.ts'
import { post, postForm, startHooks, type Ack } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { nextOf } from '../helpers/links.ts'
import { addEndpoint, callTool } from '../helpers/mcp.ts'
import { refuseAll } from '../helpers/refusals.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
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

/** A form, as a program posts it: by the operator of this machine, or by the user of the proxy. */
const form = (path: string, fields = {}, status = 200) =>
  answers(status, postForm(base, path, fields))
const formAs = (user: Readonly<Record<string, string>>, path: string, fields = {}, status = 200) =>
  answers(status, postForm(proxied, path, fields, user))
const formOfAnn = (path: string, fields = {}, status = 200) => formAs(ANN, path, fields, status)
const api = apiOf(base)

await t.test('providers, endpoints and settings: each change, on each of its faces', async (t) => {
  await changesLeave(t, env, 'hooks', [
    ['form', () => form('/providers', { name: 'ci' }), 'operator: provider add generic:ci'],
    [
      'form of a user',
      () => formOfAnn('/providers/generic:ci/enabled', { enabled: 'true' }),
      'ann@example.com: provider enable generic:ci',
    ],
    [
      'a user without a name',
      () => formAs({}, '/providers/chat/enabled', { enabled: 'false' }),
      'anonymous: provider disable chat',
    ],
    [
      'a user who is named like another actor',
      () => formAs({ 'Remote-Email': 'operator' }, '/providers/chat/enabled', { enabled: 'true' }),
      'user operator: provider enable chat',
    ],
    [
      'form: alarm',
      () => form('/providers/generic:ci/alarm', { expected_interval: '1h' }),
      'operator: provider alarm generic:ci',
    ],
    [
      'form: answers',
      () => form('/providers/generic:ci/answers', { methods: 'GET' }),
      'operator: provider set generic:ci',
    ],
    [
      'form: rotate',
      () => formOfAnn('/providers/generic:ci/rotate', { overlap: '0' }),
      'ann@example.com: provider rotate generic:ci',
    ],
    [
      'form: remove',
      () => form('/providers/generic:ci/remove'),
      'operator: provider remove generic:ci',
    ],
    [
      'command: add',
      () => command(env, 0, 'provider', 'add', 'lan', '--open', '--enable'),
      'command: provider add generic:lan',
    ],
    [
      'command: disable',
      () => command(env, 0, 'provider', 'disable', 'lan'),
      'command: provider disable generic:lan',
    ],
    [
      'command: enable',
      () => command(env, 0, 'provider', 'enable', 'lan'),
      'command: provider enable generic:lan',
    ],
    [
      'command: alarm',
      () => command(env, 0, 'provider', 'alarm', 'lan', '--off'),
      'command: provider alarm generic:lan',
    ],
    [
      'command: set',
      () => command(env, 0, 'provider', 'set', 'lan', '--methods', 'GET,POST'),
      'command: provider set generic:lan',
    ],
    [
      'form: endpoint',
      () => formOfAnn('/settings/endpoints', { name: 'spare' }),
      'ann@example.com: endpoint add spare',
    ],
    [
      'form: revoke',
      () => form('/settings/endpoints/spare/revoke'),
      'operator: endpoint revoke spare',
    ],
    [
      'command: endpoint',
      () => command(env, 0, 'endpoint', 'add', 'spare'),
      'command: endpoint add spare',
    ],
    [
      'command: revoke',
      () => command(env, 0, 'endpoint', 'revoke', 'spare'),
      'command: endpoint revoke spare',
    ],
    [
      'settings: those that differ',
      () => formOfAnn('/settings', { sse_retry_ms: '4000', retention_max_rows: '50000' }),
      'ann@example.com: settings change sse_retry_ms',
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
    ['taken', () => form('/providers', { name: 'lan', trust_mode: 'token' }, 409)],
    ['wrong', () => form('/providers', { name: 'A b' }, 422)],
    ['unknown', () => form('/providers/generic:none/enabled', { enabled: 'true' }, 404)],
    ['no rotation', () => form('/providers/generic:lan/rotate', {}, 404)],
    ['wrong setting', () => form('/settings', { sse_retry_ms: '1' }, 422)],
    ['endpoint unknown', () => form('/settings/endpoints/none/revoke', {}, 404)],
    ['forwarder unknown', () => form('/settings/forwarders/none/forget', {}, 404)],
    ['command refused', () => command(env, 1, 'provider', 'remove', 'none')],
    ['command taken', () => command(env, 1, 'provider', 'add', 'lan')],
    [
      'another site',
      () =>
        answers(
          403,
          postForm(base, '/providers/chat/enabled', { enabled: 'false' }, { Origin: 'http://x' }),
        ),
    ],
  ])
})

await t.test('destinations: each change, on each of its faces', async (t) => {
  const path = '/api/v1/destinations'
  await changesLeave(t, env, 'hooks', [
    [
      'form',
      () => formOfAnn('/destinations', { name: 'erp', url }, 303),
      'ann@example.com: destination add erp',
    ],
    [
      'form: disable',
      () => form('/destinations/erp/enabled', { enabled: 'false' }),
      'operator: destination disable erp',
    ],
    ['form: retry', () => form('/destinations/erp/retry'), 'operator: destination retry erp'],
    [
      'form: test',
      () => form('/destinations/erp/test', { url }),
      `operator: destination test erp at ${receiver.url}/onwards?…`,
    ],
    ['form: remove', () => form('/destinations/erp/remove'), 'operator: destination remove erp'],
    [
      'API',
      () => answers(201, api('POST', '/destinations', { name: 'erp', url })),
      'operator: destination add erp',
    ],
    [
      'API of a user',
      () =>
        answers(
          200,
          request(`${proxied}${path}/erp/enabled`, {
            method: 'PUT',
            headers: { ...ANN, 'content-type': 'application/json' },
            body: '{"enabled":false}',
          }),
        ),
      'ann@example.com: destination disable erp',
    ],
    [
      'API: enable',
      () => answers(200, api('PUT', '/destinations/erp/enabled', { enabled: true })),
      'operator: destination enable erp',
    ],
    [
      'API: retry',
      () => answers(200, api('POST', '/destinations/erp/retry', {})),
      'operator: destination retry erp',
    ],
    [
      'API: remove',
      () => answers(204, api('DELETE', '/destinations/erp')),
      'operator: destination remove erp',
    ],
    [
      'command',
      () => command(env, 0, 'destination', 'add', 'erp', url),
      'command: destination add erp',
    ],
    [
      'API: set',
      () => answers(200, api('PUT', '/destinations/erp', { url })),
      'operator: destination set erp',
    ],
    ['form: set', () => form('/destinations/erp', { url }), 'operator: destination set erp'],
    [
      'command: set',
      () => command(env, 0, 'destination', 'set', 'erp', '--timeout', '5'),
      'command: destination set erp',
    ],
    [
      'API: retry of one',
      () => answers(200, api('POST', '/destinations/erp/retry', { events: [1] })),
      'operator: destination retry erp',
    ],
    [
      'command: disable',
      () => command(env, 0, 'destination', 'disable', 'erp'),
      'command: destination disable erp',
    ],
    [
      'command: enable',
      () => command(env, 0, 'destination', 'enable', 'erp'),
      'command: destination enable erp',
    ],
    [
      'command: retry',
      () => command(env, 0, 'destination', 'retry', 'erp'),
      'command: destination retry erp',
    ],
    [
      'what it is sent by itself',
      async () => {
        await post(base, 'generic/lan', '{}')
        await until(() => receiver.received.length > 0, 'the delivery')
      },
    ],
    [
      'command: remove',
      () => command(env, 0, 'destination', 'remove', 'erp'),
      'command: destination remove erp',
    ],
    // Refusals.
    ['unknown', () => form('/destinations/none/enabled', { enabled: 'true' }, 404)],
    ['set of unknown', () => answers(404, api('PUT', '/destinations/none', { url }))],
    ['nothing to retry', () => answers(404, api('POST', '/destinations/none/retry', {}))],
    ['private', () => form('/destinations', { name: 'x', url: 'http://10.0.0.1/' }, 422)],
    ['unknown member', () => answers(422, api('POST', '/destinations', { name: 'x', url, a: 1 }))],
    ['command refused', () => command(env, 1, 'destination', 'remove', 'none')],
  ])
})

type Started = { readonly highest_id: number; readonly job: { readonly id: string } }

await t.test('replays: by hand, by a token, by a tool, as a job', async (t) => {
  const agent = await addEndpoint(base, 'agent', { allow_replay: 'true' })
  const reader = await addEndpoint(base, 'reader')
  const program = apiOf(base, agent.token)
  const id = (await post(base, 'generic/lan', '{}')).json<Ack>().id
  /** Starts a job with all events, and gives its id. */
  async function job(path: string): Promise<string> {
    const counted = await program<Started>('POST', '/events/replay', { dry_run: true })
    const { highest_id } = counted.json
    const wanted = { highest_id, target_url: receiver.url + path }
    return (await program<Started>('POST', '/events/replay', wanted)).json.job.id
  }
  const jobText = `to ${receiver.url}`
  let running = ''
  await changesLeave(t, env, 'hooks', [
    [
      'form of a user',
      () => formOfAnn(`/log/${id}/replay`, { target_url: url }),
      `ann@example.com: event replay event ${id} to ${shown}`,
    ],
    [
      'API without a token',
      () => answers(200, api('POST', `/events/${id}/replay`, { target_url: url })),
      `operator: event replay event ${id} to ${shown}`,
    ],
    [
      'API with a token',
      () => answers(200, program('POST', `/events/${id}/replay`, { target_url: url })),
      `token agent: event replay event ${id} to ${shown}`,
    ],
    [
      'tool',
      () => callTool(agent, 'replay_webhook_event', { id, target_url: url }),
      `token agent: event replay event ${id} to ${shown}`,
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
      new RegExp(`^token agent: replay job start \\w{16} ${jobText}/yes$`),
    ],
    [
      'job that a person cancels',
      async () => {
        running = await job('/held')
        await until(() => held.length > 0, 'its first event')
        await answers(200, api('DELETE', `/replay-jobs/${running}`))
        for (const answer of held.splice(0)) answer()
      },
      /^token agent: replay job start /,
      /^operator: replay job cancel \w{16}$/,
    ],
    ['a job that has ended', () => answers(200, program('DELETE', `/replay-jobs/${running}`))],
    // Refusals.
    ['no event', () => answers(404, program('POST', '/events/9999/replay', { target_url: url }))],
    ['no target', () => answers(422, program('POST', `/events/${id}/replay`, {}))],
    [
      'no right',
      () => answers(403, apiOf(base, reader.token)('POST', `/events/${id}/replay`, {})),
    ],
    ['no such token', () => answers(401, apiOf(base, token)('POST', `/events/${id}/replay`, {}))],
    ['no such tool', () => callTool(agent, 'replay_webhook_event', { id: 9999, target_url: url })],
    [
      'job to a private target',
      () =>
        answers(
          422,
          program('POST', '/events/replay', { highest_id: id, target_url: 'http://10.0.0.1/' }),
        ),
    ],
    ['no such job', () => answers(404, program('DELETE', '/replay-jobs/none'))],
  ])
  const texts = JSON.stringify(await auditOf(env, '--limit', '1000'))
  t.notMatch(texts, token, 'no line has the secret of a URL')
})

await t.test('the page has the changes of hooks, page by page', async (t) => {
  const own = await startHooks(t, postgres)
  t.match((await request(`${own.base}/audit`)).text, 'No changes yet.')
  await postgres.query(
    own.env,
    `insert into audit.changes (actor, action, service, subject)
     select '<b>ann', 'provider add', case when i % 2 = 0 then 'hooks' else 'ops' end, 'generic:' || i
       from generate_series(1, 240) i`,
  )
  const subjects: number[] = []
  for (let next: string | undefined = '/audit'; next !== undefined;) {
    const { status, text } = await request(own.base + next)
    t.equal(status, 200, next)
    t.match(text, '&lt;b&gt;ann')
    const rows = [...text.matchAll(/<bdi>generic:<wbr \/>(\d+)<\/bdi>/g)]
    subjects.push(...rows.map((match) => Number(match[1])))
    next = nextOf(text, 'audit-rows')
  }
  const even = Array.from({ length: 120 }, (_, at) => 240 - 2 * at)
  t.same(subjects, even, 'newest first, each once, none of another service')
  const { text } = await request(`${own.base}/audit`, { headers: { 'hx-request': 'true' } })
  t.match(text, /^<section id="audit"/, 'htmx gets the rows alone')
  for (const path of ['/', '/log', '/settings']) {
    t.match((await request(own.base + path)).text, '<a href="/audit">audit</a>', path)
  }
  await refuseAll(t, { service: 'hooks', base: own.base, state: async () => 0 }, [
    ['GET /audit?before=x', 400],
    ['GET /audit?before=0', 400],
    ['POST /audit', 405],
    [{ call: 'GET /audit', headers: { host: 'evil.example' } }, 403],
    [{ call: 'GET /audit', headers: { 'x-forwarded-for': '192.0.2.1' } }, 403],
    [
      {
        call: 'GET /audit',
        headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' },
      },
      403,
    ],
  ])
})
