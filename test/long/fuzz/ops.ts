import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { openOpsService } from '../../../commands/services/ops.ts'
import { ChatRequest } from '../../../services/ops/chat.ts'
import { CHAT_KEY, MODEL_KEY, deliverAlert, startBriefs } from '../../helpers/alerts.ts'
import type { Backend } from '../../helpers/backends.ts'
import type { FuzzProfile } from './profile.ts'
import { typeOf } from './promises.ts'
import { routesOf } from './routes.ts'
import { MARKER, fitting, oddCursor, oddText, unfit } from './values.ts'
import type { WireAnswer, WireRequest } from './wire.ts'
import { request } from '../../helpers/http.ts'
import { ended, inventoryFile, startOpsProcess } from '../../helpers/ops.ts'
import type { Memory, OpsServer, Session } from '../../helpers/ops.ts'
import type { Owner } from '../../helpers/owner.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { secret } from '../../helpers/secrets.ts'
import type { ServerProcess } from '../../helpers/server-process.ts'

/** How long a session runs: there is one that can be stopped, and soon none. */
const SESSION_MS = 400

/** Starts the ops service with a model that writes briefs, and gives what a fuzz has to know of it. */
export async function opsToFuzz(
  t: Owner,
  backend: Backend,
): Promise<{ server: ServerProcess; profile: FuzzProfile }> {
  const briefs = await startBriefs(t)
  const { url } = await startReceiver(t, async (_, response) => {
    await pause(SESSION_MS)
    response.writeHead(204).end()
  })
  const services = [{ name: 'shop', checks: [{ type: 'http', name: 'page', url }] }]
  const ops = await startOpsProcess(t, backend, {
    ...(await backend.env(t)),
    ...briefs.env,
    OPS_CHAT_API_KEY: CHAT_KEY,
    OPS_INVENTORY: await inventoryFile(t, { services }),
    ...(backend.name === 'postgres' && { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8' }),
  })
  const { base, server } = ops
  const keep = openKeep(ops)
  const wrong = secret('no-key')
  const profile: FuzzProfile = {
    ...{ base, pools: keep.pools, refresh: keep.refresh, refusalFault },
    table: await routesOf(t, openOpsService),
    known: KNOWN,
    forms: FORMS,
    needs: {},
    query: ['limit', 'offset', 'level', 'service', 'category', 'before', 'last_event_id', 'saved'],
    bodies: {
      'POST /api/v1/webhook': alert,
      'POST /v1/chat/completions': fc
        .oneof({ weight: 3, arbitrary: chat }, { weight: 1, arbitrary: unfit(chat) })
        .map((body) => JSON.stringify(body) ?? ''),
    },
    callers: {
      key: () => [['authorization', `Bearer ${CHAT_KEY}`]],
      nobody: () => [],
      stranger: () => [['authorization', `Bearer ${wrong}`]],
      foreign: () => [
        ['origin', 'http://evil.example'],
        ['sec-fetch-site', 'cross-site'],
      ],
      forwarded: () => [
        ['x-forwarded-for', '203.0.113.7'],
        ['remote-email', 'ann@example.com'],
      ],
    },
    best: () => undefined,
    mayFail: [],
    mayWarn: {},
    secrets: [CHAT_KEY, MODEL_KEY, wrong],
  }
  return { server, profile }
}

/** A session that may run now, memories and an alert; and the usual configuration. */
function openKeep(ops: OpsServer) {
  const { api, base } = ops
  let calls = 0
  let pools: Readonly<Record<string, readonly string[]>> = {}

  async function refresh(): Promise<void> {
    await api('PUT', '/config', { interval: 3_600, dry_run: false })
    const memory = { category: 'timing', observation: `slow ${MARKER}`, service: 'shop' }
    const { json } = await api<{ memories: readonly Memory[] }>('GET', '/memories?limit=9')
    if (json.memories.length < 9) await api('POST', '/memories', memory)
    const page = await request(`${base}/alerts`)
    const alerts = [...page.text.matchAll(/\/alerts\/(\d+)\/investigate/g)].map(([, id = '']) => id)
    if (alerts.length === 0) await deliverAlert(base, `{"alert":"${'x'.repeat(20)}"}`)
    // Half of the time one runs, that can be stopped; else there is room for another one.
    if (calls++ % 2 === 0) await api('POST', '/sessions/trigger', { prompt: `look ${MARKER}` })
    else await ended(ops)
    const newest = await api<{ sessions: readonly Session[] }>('GET', '/sessions?limit=3')
    const sessions = newest.json.sessions.map(({ id }) => String(id))
    const memories = json.memories.map(({ id }) => String(id))
    pools = { session: sessions, memory: memories, alert: alerts }
  }

  return { refresh, pools: () => pools }
}

const alert = fc.oneof(
  fc.record({ tier: fc.constantFrom<unknown>(1, 3, 4, 0, '2', null), text: oddText }).map(text),
  fc.constantFrom('plain text', 'a=1&b=2', '{"status":"firing","alerts":[{"labels":null}]}', '[]'),
  oddText.map(
    (one) => `{"groupKey":${JSON.stringify(one)},"alerts":[{"fingerprint":${text(one)}}]}`,
  ),
)
const chat = fitting(ChatRequest, {
  model: fc.constantFrom('gatehouse', 'tier1', 'tier3'),
  content: fc.constantFrom<unknown>('look', MARKER, [{ type: 'text', text: 'look' }]),
  role: fc.constantFrom('user', 'user', 'system'),
})

function text(value: unknown): string {
  return JSON.stringify(value) ?? ''
}

const texts = fc.constantFrom('shop', 'timing', MARKER, 'é'.repeat(50))
const session = fc.nat(2).map((at) => `~session.${at}~`)
const KNOWN: FuzzProfile['known'] = {
  'sessions.id': session,
  'memories.id': fc.nat(9).map((at) => `~memory.${at}~`),
  'alerts.id': fc.nat(9).map((at) => `~alert.${at}~`),
  ...{ service: texts, category: texts, observation: texts },
  prompt: fc.constantFrom('look', MARKER, 'x'.repeat(5_000)),
  tier: fc.constantFrom('auto', '1', '2', '3'),
  confidence: fc.constantFrom(0, 1, 0.5, 0.7),
  active: fc.boolean(),
  interval: fc.constantFrom(3_600, 86_400, 2_147_483_647),
  ...{ tier1_model: texts, tier2_model: texts, tier3_model: texts },
  dry_run: fc.boolean(),
  level: fc.constantFrom('info', 'warning', 'critical'),
  limit: fc.constantFrom('0', '1', '1000'),
  offset: fc.constantFrom('0', '1', '9007199254740991'),
  ...{
    before: fc.constantFrom('1', '2147483648'),
    last_event_id: fc.constantFrom('1', '9999999999'),
  },
  cursor: oddCursor,
}

const FORMS: FuzzProfile['forms'] = {
  'POST /sessions/trigger': ['prompt', 'tier?'],
  'POST /sessions/:id/stop': [],
  'POST /alerts/:id/investigate': [],
  'POST /memories': ['service?', 'category', 'observation', 'confidence', 'active?'],
  'POST /memories/:id': ['service?', 'category?', 'observation', 'confidence', 'active?'],
  'POST /memories/:id/delete': [],
  'POST /config': ['interval?', 'tier1_model?', 'tier2_model?', 'tier3_model?', 'dry_run?'],
}

/** ops.md section 7: `{error}`; of the chat as OpenAI has it; a page where the API is not. */
function refusalFault(answer: WireAnswer, { target }: WireRequest): string | undefined {
  const type = typeOf(answer)
  if (type === 'text/html') return /^\/(?:api|v1)\//.test(target) ? 'a page of an API' : undefined
  if (type !== 'application/json') return `its type is ${type}`
  const body: unknown = JSON.parse(answer.body.toString('utf8'))
  if (typeof body !== 'object' || body === null) return 'no object'
  const { error, ...more }: { error?: unknown; message?: unknown } = body
  if (/^(?:https?:\/\/[^/]*)?\/v1\//.test(target)) {
    const members = typeof error === 'object' && error !== null ? Object.keys(error).join() : ''
    return members === 'message,type,param,code' ? undefined : `its members are ${members}`
  }
  const others = Object.keys(more).filter((name) => name !== 'message')
  if (others.length > 0) return `it has ${others.join()}`
  return typeof error === 'string' && error !== '' ? undefined : 'no text for people'
}
