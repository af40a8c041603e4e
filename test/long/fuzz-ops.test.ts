import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { t } from 'tap'
import * as Type from '../../kernel/schema.ts'
import type { OpsApp } from '../../routes/ops/kit.ts'
import { opsRoutes } from '../../routes/ops/routes.ts'
import { ChatRequest } from '../../services/ops/agent/chat.ts'
import { CHAT_KEY, deliverAlert } from '../helpers/alerts.ts'
import { eachBackend } from '../helpers/backends.ts'
import { postForm } from '../helpers/hooks.ts'
import { META } from '../helpers/mcp.ts'
import { calls, MODEL_KEY, startModel } from '../helpers/model.ts'
import { ended, inventoryFile, startOpsProcess } from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret, shownSecret } from '../helpers/secrets.ts'
import { RPC_FAULT, toolCalls, toolHeaders, fuzz, INERT, UNWATCHED } from './fuzz.ts'
import { MARKER } from './fuzz-values.ts'

/** But for the tools of a session, whose token only an agent that runs has. */
const ROUTES = opsRoutes(INERT as OpsApp, async () => true).filter(
  ({ path }) => path !== '/mcp/session',
)

/** ops.md section 7; some faults of alerts have a message beside. */
const FAULT = Type.Object(
  { error: Type.String({ minLength: 1 }), message: Type.Optional(Type.String()) },
  { additionalProperties: false },
)
/** An error as OpenAI has it. */
const CHAT_FAULT = Type.Object({
  error: Type.Object({
    message: Type.String({ minLength: 1 }),
    type: Type.String(),
    param: Type.Null(),
    code: Type.Union([Type.String(), Type.Null()]),
  }),
})
const Alert = Type.Union([
  Type.Object({ tier: Type.Integer({ minimum: 0, maximum: 4 }), text: Type.String() }),
  Type.Object({ groupKey: Type.String(), alerts: Type.Array(Type.Unknown(), { maxItems: 2 }) }),
])
const TOMORROW = new Date(Date.now() + 86_400_000).toISOString()
const NONE: readonly string[] = []
const Word = Type.String({ pattern: '^[a-z]{1,12}$' })
const Memory = { type: Type.Literal('memory'), name: Word }
/** The name of a check stays. */
const Kept = { type: Type.Literal('memory'), name: Type.Literal('kept') }
const HAND = Type.Literal('hand')
const HOUR = { for: Type.Literal('1h'), reason: Word }
/** Bodies of which the schema says less than the handler. */
const BODIES = {
  'POST /checks': Type.Object({ service: HAND, ...Memory }),
  'POST /checks/:id': Type.Object({ service: HAND, ...Kept }),
  'POST /checks/try': Type.Object({ service: HAND, ...Memory }),
  'POST /checks/:id/mute': Type.Object(HOUR),
  'POST /api/v1/checks': Type.Object({ service: HAND, check: Type.Object(Memory) }),
  'PUT /api/v1/checks/:id': Type.Object({ check: Type.Object(Kept) }),
  'POST /mutes': Type.Object({ service: HAND, ...HOUR }),
  'POST /api/v1/mutes': Type.Object({ service: HAND, ...HOUR }),
  'POST /silences': Type.Object({ match: Type.Literal('service=hand'), ...HOUR }),
  'POST /api/v1/silences': Type.Object({
    match: Type.Object({ service: HAND }),
    ends_at: Type.Literal(TOMORROW),
    reason: Word,
  }),
  'POST /config/assistants': Type.Object({ name: Word, allow_start: Type.Literal('true') }),
}
/** It waits for approval. */
const OPERATION = {
  name: 'clean',
  action_type: 'clean',
  argv: ['true'],
  approval: true,
  cooldown: { count: 10_000, window_s: 60 },
}
const ASKED = { service: 'shop', operation: 'clean', reason: 'it is full' }
/** A memory of a session, which a person can confirm. */
const LEARNED = { category: 'timing', observation: `slow at noon ${MARKER}`, service: 'shop' }
/** How long a session runs: there is one to stop, and soon none. */
const SESSION_MS = 400

await eachBackend(t, 'ops: answers keep what the declarations promise', async (t, backend) => {
  const model = await startModel(t, async ({ tools, step, tier }) => {
    if (tools === undefined) return 'The brief.'
    if (step === 0) return calls(['remember', LEARNED])
    if (step === 1 && tier === 3) return calls(['run_operation', ASKED])
    await pause(SESSION_MS)
    return 'All is well.'
  })
  const { url } = await startReceiver(t)
  const job = secret('heartbeat-token')
  const checks = [
    { type: 'http', name: 'page', url },
    // It fails: its notice lasts, and can be acknowledged.
    { type: 'tcp', name: 'gone', host: '127.0.0.1', port: 9 },
    { type: 'heartbeat', name: 'backup', period: '1h', token: job },
  ]
  const services = [{ name: 'shop', checks, operations: [OPERATION] }]
  const ops = await startOpsProcess(t, backend, {
    ...(await backend.env(t)),
    ...model.env,
    ...UNWATCHED,
    OPS_CHAT_API_KEY: CHAT_KEY,
    OPS_INVENTORY: await inventoryFile(t, { services }),
    OPS_STATUS_SERVICES: 'shop',
  })
  const { api, base, server } = ops
  const wrong = secret('no-key')
  let known = {
    sessions: NONE,
    memories: NONE,
    alerts: NONE,
    checks: NONE,
    mutes: NONE,
    silences: NONE,
    notices: NONE,
    approvals: NONE,
  }
  let refreshed = 0
  const added = await postForm(base, '/config/assistants', { name: 'keep' })
  const assistant = { url: `${base}/mcp/ops`, token: shownSecret(added, 'assistant-token') }

  /** The ids of a list, of which there is at least one: if need be, it is created. */
  async function idsOf(noun: string, query: string, create?: () => Promise<unknown>) {
    const list = async () => {
      const { json } = await api<Record<string, readonly { id: number }[]>>(
        'GET',
        `/${noun}?${query}`,
      )
      return (json[noun] ?? []).map(({ id }) => String(id))
    }
    const ids = await list()
    if (ids.length > 0 || create === undefined) return ids
    await create()
    return list()
  }

  async function pendingApprovals() {
    const { json } = await api<{ approvals: readonly { id: number; status: string }[] }>(
      'GET',
      '/approvals',
    )
    const pending = json.approvals.filter(({ status }) => status === 'pending')
    return pending.map(({ id }) => String(id))
  }

  async function refresh() {
    await api('PUT', '/pause', { investigations: false, repairs: false })
    await api('PUT', '/config', { interval: 3_600, dry_run: false })
    // 409 where they are still there.
    await postForm(base, '/config/assistants', { name: 'spare' })
    await api('POST', '/checks', { service: 'hand', check: { type: 'memory', name: 'kept' } })
    const memory = { category: 'timing', observation: `slow ${MARKER}`, service: 'shop' }
    const muted = { service: 'hand', for: '1h', reason: 'work' }
    const silenced = { match: { service: 'hand' }, ends_at: TOMORROW, reason: 'work' }
    const alert = `{"alert":"${'x'.repeat(20)}"}`
    // Half of the time a session runs and can be stopped, else another one can start.
    const start = () =>
      postForm(base, '/sessions/trigger', { prompt: `look ${MARKER}`, tier: '3' })
    if (refreshed++ % 2 === 0) await start()
    else await ended(ops)
    if ((await pendingApprovals()).length === 0) {
      await ended(ops)
      await start()
      await ended(ops)
    }
    const { json } = await api<{ checks: readonly { id: number; name: string }[] }>(
      'GET',
      '/checks',
    )
    const kept = json.checks.filter(({ name }) => name === 'kept').map(({ id }) => String(id))
    // It is muted once: 404 where it is not muted yet.
    for (const id of kept) {
      await postForm(base, `/checks/${id}/unmute`, {})
      await postForm(base, `/checks/${id}/mute`, { for: '1h', reason: 'work' })
    }
    known = {
      sessions: await idsOf('sessions', 'limit=3'),
      memories: await idsOf('memories', 'limit=9', () => api('POST', '/memories', memory)),
      alerts: await idsOf('alerts', 'limit=20', () => deliverAlert(base, alert)),
      mutes: await idsOf('mutes', '', () => api('POST', '/mutes', muted)),
      silences: await idsOf('silences', '', () => api('POST', '/silences', silenced)),
      notices: await idsOf('notices', 'lasting=true'),
      checks: kept,
      approvals: await pendingApprovals(),
    }
  }

  /** One of a list as it is when the request is made. */
  const oneOf = (noun: keyof typeof known) =>
    fc.nat(50).map((at) => known[noun][at % known[noun].length] ?? '1')
  const ids = Object.fromEntries(
    (Object.keys(known) as (keyof typeof known)[]).map((noun) => [`${noun}/:id`, oneOf(noun)]),
  )
  await fuzz(t, backend.name, {
    server,
    base,
    routes: ROUTES,
    refresh,
    bodies: {
      ...BODIES,
      'POST /api/v1/webhook': Alert,
      'POST /v1/chat/completions': ChatRequest,
      'POST /mcp/ops': await toolCalls(assistant),
    },
    known: {
      ...ids,
      'calls/:call': fc.constant('1'),
      'beat/:token': fc.constant(job),
      'assistants/:name': fc.constant('spare'),
      _meta: fc.constant(META),
      model: fc.constantFrom('gatehouse', 'tier1'),
      role: fc.constantFrom('user', 'system'),
      content: fc.constantFrom('look', MARKER),
      tier: fc.constantFrom('auto', '1', '3'),
      interval: fc.constantFrom(3_600, 86_400),
      // The place in a list of sessions, and the days that are shown.
      after: fc.constant(''),
      when: fc.constantFrom('', 'today', 'days'),
      zone: fc.constantFrom('', 'Europe/Berlin'),
    },
    callers: {
      key: () => ({ authorization: `Bearer ${CHAT_KEY}` }),
      nobody: () => ({}),
      tool: (sent) => toolHeaders(assistant, sent),
      stranger: () => ({ authorization: `Bearer ${wrong}` }),
      foreign: () => ({ origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }),
    },
    best: ({ path }) => (path === '/mcp/ops' ? 'tool' : 'key'),
    faults: (path) => ({ 'application/json': faultOf(path) }),
    secrets: [CHAT_KEY, MODEL_KEY, wrong, job, assistant.token],
  })
})

function faultOf(path: string) {
  if (path.startsWith('/v1/')) return CHAT_FAULT
  return path.startsWith('/mcp/') ? Type.Union([RPC_FAULT, FAULT]) : FAULT
}
