import { t } from 'tap'
import { ANN, auditOf, changesLeave, PROXIED } from '../helpers/audit.ts'
import { postForm } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { NAVIGATION } from '../helpers/links.ts'
import { says, startModelOps, type Call } from '../helpers/model.ts'
import { ended, inventoryFile, sessionsOf } from '../helpers/ops.ts'
import { expectStatus } from '../helpers/refusals.ts'
import { secret } from '../helpers/secrets.ts'
import { useTools } from '../helpers/tools.ts'

const key = secret('chat-key')
const restart = { name: 'restart', action_type: 'restart', argv: ['true'] }
const once = { ...restart, cooldown: { count: 1, window_s: 3_600 } }
const { ops, model } = await startModelOps(t, {
  ...PROXIED,
  OPS_CHAT_API_KEY: key,
  OPS_INVENTORY: await inventoryFile(t, {
    services: [{ name: 'shop', checks: [], operations: [once] }],
  }),
})
const { api, base, env } = ops
/** A form, as a browser posts it: by the user whom the proxy names, or by nobody it knows. */
const form = (path: string, fields = {}, status = 303) =>
  expectStatus(status, postForm(base, path, fields, NAVIGATION))
const formOfAnn = (path: string, fields = {}) =>
  expectStatus(303, postForm(base, path, fields, { ...NAVIGATION, ...ANN }))

const call =
  (status: number, ...request: Parameters<typeof api>) =>
  () =>
    expectStatus(status, api(...request))

const NOTE = { category: 'timing', observation: 'a secret hides here', confidence: '0.5' }
const MEMORY = { ...NOTE, confidence: 0.5, active: true }

await t.test('config and memories: each change, on each of its faces', async (t) => {
  await changesLeave(t, env, 'ops', [
    [
      'API',
      call(200, 'PUT', '/config', { interval: 1_800, dry_run: false }),
      'anonymous: config change interval',
    ],
    [
      'form of a user',
      () => formOfAnn('/config', { interval: '3600', tier1_model: 'small' }),
      'ann@example.com: config change interval, tier1_model',
    ],
    ['nothing differs', call(200, 'PUT', '/config', { interval: 3_600 })],
    ['API: memory', call(201, 'POST', '/memories', MEMORY), 'anonymous: memory add memory 1'],
    [
      'form: memory',
      () => formOfAnn('/memories', { ...NOTE, active: 'true' }),
      'ann@example.com: memory add memory 2',
    ],
    [
      'form: change',
      () => form('/memories/2', { ...NOTE, active: 'true' }),
      'anonymous: memory change memory 2',
    ],
    [
      'form: remove',
      () => formOfAnn('/memories/2/delete'),
      'ann@example.com: memory remove memory 2',
    ],
    [
      'what was seen',
      () => formOfAnn('/waiting/seen', { until: '2026-01-31T12:00:00Z' }),
      'ann@example.com: waiting seen what happened until 2026-01-31T12:00:00.000Z',
    ],
    [
      'form: silence',
      () => formOfAnn('/silences', { match: 'service=shop', for: '1h', reason: 'it moves' }),
      'ann@example.com: silence add service=shop',
    ],
    [
      'API: silence ends',
      call(204, 'DELETE', '/silences/1'),
      'anonymous: silence end service=shop',
    ],
    // Refusals.
    ['wrong', call(400, 'PUT', '/config', { interval: 0 })],
    ['form: wrong', () => form('/config', { interval: '0' }, 400)],
    ['no silence', call(404, 'DELETE', '/silences/1')],
    [
      'another site',
      () => expectStatus(403, postForm(base, '/memories', NOTE, { Origin: 'http://x' })),
    ],
  ])
  t.notMatch(JSON.stringify(await auditOf(env)), 'hides here', 'no line has what a memory says')
})

await t.test('sessions, and what their models do', async (t) => {
  const released = Promise.withResolvers<void>()
  model.answer(async () => {
    await released.promise
    return says('Done.')
  })
  const [{ id: newest = 0 } = {}] = await sessionsOf(ops, '?limit=1')
  const first = newest + 1
  await changesLeave(t, env, 'ops', [
    [
      'API',
      call(201, 'POST', '/sessions/trigger', { prompt: 'look' }),
      `anonymous: session start session ${first}`,
    ],
    ['one runs', call(409, 'POST', '/sessions/trigger', { prompt: 'look' })],
    [
      'form: stop',
      async () => {
        await formOfAnn(`/sessions/${first}/stop`)
        await ended(ops, first)
      },
      `ann@example.com: session stop session ${first}`,
    ],
    [
      'form of a user',
      async () => {
        released.resolve()
        await formOfAnn('/sessions/trigger', { prompt: 'look', tier: '1' })
        await ended(ops, first + 1)
      },
      `ann@example.com: session start session ${first + 1}`,
    ],
    [
      'chat',
      () => {
        const asked = { model: 'gatehouse', messages: [{ role: 'user', content: 'hello' }] }
        return request(`${base}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify(asked),
        })
      },
      `token OPS_CHAT_API_KEY: session start session ${first + 2}`,
    ],
    [
      'an alert starts one by itself; a person has it looked into again',
      async () => {
        await ops.query(
          `with alert as (
             insert into ops.alerts (fingerprint, source, content, first_seen, last_seen, outcome)
             values ('print', null, 'one', now(), now(), 'acknowledged') returning id)
           insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
           select id, 'one', 'Alert', '{}', now(), now() from alert`,
        )
        await form('/alerts/1/investigate')
        await ended(ops, first + 3)
      },
      `anonymous: session start session ${first + 3}`,
    ],
  ])

  const remember = { category: 'timing', observation: 'slow on Sundays', service: 'shop' }
  const operation = { service: 'shop', operation: 'restart', reason: 'it hangs' }
  const acts = (...list: readonly Call[]) => useTools(t, { model, ops }, list, 3)
  await changesLeave(t, env, 'ops', [
    [
      'tools of a session',
      () =>
        acts(
          ['remember', remember],
          ['remember', remember],
          ['run_operation', operation],
          // Refused: its cooldown, and an operation that is not there.
          ['run_operation', operation],
          ['run_operation', { ...operation, operation: 'nothing' }],
        ),
      'anonymous: session start session ',
      /^session \d+: memory add memory 3$/,
      /^session \d+: memory strengthen memory 3$/,
      /^session \d+: operation run restart of shop$/,
    ],
    [
      'dry run',
      async () => {
        await expectStatus(200, api('PUT', '/config', { dry_run: true }, ANN))
        await acts(['run_operation', operation])
      },
      'ann@example.com: config change dry_run',
      'anonymous: session start',
    ],
  ])
})

await t.test('the page has the changes of ops', async (t) => {
  t.match(await ops.page('/audit'), 'operation run: <bdi>restart of shop</bdi>')
  t.match(await ops.page('/'), '<a href="/audit">audit</a>')
})
