import { t } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { ANN, answers, auditOf, changesLeave, PROXIED } from '../helpers/audit.ts'
import { backends } from '../helpers/backends.ts'
import { postForm } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { NAVIGATION } from '../helpers/links.ts'
import { calls, inTier, says, startModel } from '../helpers/model.ts'
import {
  ended,
  inventoryFile,
  startOps,
  startOpsProcess,
  trigger,
  type Session,
} from '../helpers/ops.ts'
import { secret } from '../helpers/secrets.ts'

const [, postgres] = backends
const key = secret('chat-key')
const model = await startModel(t)
const restart = { name: 'restart', action_type: 'restart', argv: ['true'] }
const once = { ...restart, cooldown: { count: 1, window_s: 3_600 } }
const ops = await startOps(t, postgres, {
  ...model.env,
  OPS_CHAT_API_KEY: key,
  OPS_INVENTORY: await inventoryFile(t, {
    services: [{ name: 'shop', checks: [], operations: [once] }],
  }),
})
const { api, base, env } = ops
// In a process of its own: an instance takes a session of its process that it does not run for an orphan.
const { base: proxied } = await startOpsProcess(t, postgres, { ...env, ...PROXIED })
await ended(ops)

/** A form, as a browser posts it: by the operator of this machine, or by the user of the proxy. */
const form = (path: string, fields = {}, status = 303) =>
  answers(status, postForm(base, path, fields, NAVIGATION))
const formOfAnn = (path: string, fields = {}) =>
  answers(303, postForm(proxied, path, fields, { ...NAVIGATION, ...ANN }))

const NOTE = { category: 'timing', observation: 'a secret hides here', confidence: '0.5' }
const MEMORY = { ...NOTE, confidence: 0.5, active: true }

await t.test('config and memories: each change, on each of its faces', async (t) => {
  await changesLeave(t, env, 'ops', [
    [
      'API',
      () => answers(200, api('PUT', '/config', { interval: 1_800, dry_run: false })),
      'operator: config change interval',
    ],
    [
      'form of a user',
      () => formOfAnn('/config', { interval: '3600', tier1_model: 'small' }),
      'ann@example.com: config change interval, tier1_model',
    ],
    ['nothing differs', () => answers(200, api('PUT', '/config', { interval: 3_600 }))],
    [
      'API: memory',
      () => answers(201, api('POST', '/memories', MEMORY)),
      'operator: memory add memory 1',
    ],
    [
      'form: memory',
      () => formOfAnn('/memories', { ...NOTE, active: 'true' }),
      'ann@example.com: memory add memory 2',
    ],
    [
      'form: change',
      () => form('/memories/2', { ...NOTE, active: 'true' }),
      'operator: memory change memory 2',
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
      () => answers(204, api('DELETE', '/silences/1')),
      'operator: silence end service=shop',
    ],
    // Refusals.
    ['wrong', () => answers(400, api('PUT', '/config', { interval: 0 }))],
    ['form: wrong', () => form('/config', { interval: '0' }, 400)],
    ['no silence', () => answers(404, api('DELETE', '/silences/1'))],
    [
      'another site',
      () => answers(403, postForm(base, '/memories', NOTE, { Origin: 'http://x' })),
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
  const newest = async () =>
    (await api<{ sessions: Session[] }>('GET', '/sessions?limit=1')).json.sessions[0]?.id ?? 0
  const first = (await newest()) + 1
  await changesLeave(t, env, 'ops', [
    [
      'API',
      () => answers(201, api('POST', '/sessions/trigger', { prompt: 'look' })),
      `operator: session start session ${first}`,
    ],
    ['one runs', () => answers(409, api('POST', '/sessions/trigger', { prompt: 'look' }))],
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
        const messages = [{ role: 'user', content: 'hello' }]
        return answers(
          200,
          request(`${base}/v1/chat/completions`, {
            method: 'POST',
            headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
            body: JSON.stringify({ model: 'gatehouse', messages }),
          }),
        )
      },
      `token OPS_CHAT_API_KEY: session start session ${first + 2}`,
    ],
    [
      'an alert starts one by itself; a person has it looked into again',
      async () => {
        await postgres.query(
          env,
          `with alert as (
             insert into ops.alerts (fingerprint, source, content, first_seen, last_seen, outcome)
             values ('print', null, 'one', now(), now(), 'acknowledged') returning id)
           insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
           select id, 'one', 'Alert', '{}', now(), now() from alert`,
        )
        await form('/alerts/1/investigate')
        await ended(ops, first + 3)
      },
      `operator: session start session ${first + 3}`,
    ],
  ])

  const remember = { category: 'timing', observation: 'slow on Sundays', service: 'shop' }
  const operation = { service: 'shop', operation: 'restart', reason: 'it hangs' }
  model.answer(
    inTier(3, ({ step }) =>
      step > 0
        ? says('Done.')
        : calls(
            ['remember', remember],
            ['remember', remember],
            ['run_operation', operation],
            // Refused: its cooldown, and an operation that is not there.
            ['run_operation', operation],
            ['run_operation', { ...operation, operation: 'nothing' }],
          ),
    ),
  )
  await changesLeave(t, env, 'ops', [
    [
      'tools of a session: of three, one for each tier, the last one acts',
      async () => {
        await trigger(ops)
        t.match(await ended(ops), { tier: 3, status: 'completed' })
      },
      /^operator: session start session \d+$/,
      /^session \d+: memory add memory 3$/,
      /^session \d+: memory strengthen memory 3$/,
      /^session \d+: operation run restart of shop$/,
    ],
    [
      'dry run',
      async () => {
        model.answer(
          inTier(3, async ({ step }) => {
            // A dry run does not escalate either: it is switched on once tier 3 is reached.
            if (step === 0) await apiOf(proxied)('PUT', '/config', { dry_run: true }, ANN)
            return step > 0 ? says('Done.') : calls(['run_operation', operation])
          }),
        )
        await trigger(ops)
        t.match(await ended(ops), { tier: 3, status: 'completed' })
      },
      /^operator: session start/,
      'ann@example.com: config change dry_run',
    ],
  ])
})

await t.test('the page has the changes of ops', async (t) => {
  const { status, text } = await request(`${base}/audit`)
  t.equal(status, 200)
  t.match(text, /operation run: <bdi>restart of shop<\/bdi>/)
  t.match(text, /<bdi>session \d+<\/bdi>/)
  t.match((await request(base)).text, '<a href="/audit">audit</a>')
})
