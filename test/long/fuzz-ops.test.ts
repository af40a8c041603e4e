import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { t } from 'tap'
import type { Test } from 'tap'
import Type from 'typebox'
import type { OpsApp } from '../../routes/ops/kit.ts'
import { opsRoutes } from '../../routes/ops/routes.ts'
import { ChatRequest } from '../../services/ops/chat.ts'
import { CHAT_KEY, deliverAlert } from '../helpers/alerts.ts'
import { eachBackend } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { calls, MODEL_KEY, startModel } from '../helpers/model.ts'
import {
  ended,
  inventoryFile,
  startOpsProcess,
  type Memory,
  type Session,
} from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { fuzz, INERT, UNWATCHED } from './fuzz.ts'
import { MARKER } from './fuzz-values.ts'

const ROUTES = opsRoutes(INERT as OpsApp, async () => true)

/** ops.md section 7; some faults of alerts have a message beside. */
const FAULT = Type.Object(
  { error: Type.String({ minLength: 1 }), message: Type.Optional(Type.String()) },
  { additionalProperties: false },
)
/** An error as OpenAI has it. */
const CHAT_FAULT = Type.Object({
  error: Type.Object({
    ...{ message: Type.String({ minLength: 1 }), type: Type.String(), param: Type.Null() },
    code: Type.Union([Type.String(), Type.Null()]),
  }),
})
const Alert = Type.Union([
  Type.Object({ tier: Type.Integer({ minimum: 0, maximum: 4 }), text: Type.String() }),
  Type.Object({ groupKey: Type.String(), alerts: Type.Array(Type.Unknown(), { maxItems: 2 }) }),
])
/** How long a session runs: there is one to stop, and soon none. */
const SESSION_MS = 400

await eachBackend(
  t,
  'ops: answers keep what the declarations promise',
  async (t: Test, backend) => {
    const model = await startModel(t, async ({ tools, step }) => {
      if (tools === undefined) return 'The brief.'
      if (step === 0) return calls(['list_services', {}])
      await pause(SESSION_MS)
      return 'All is well.'
    })
    const { url } = await startReceiver(t)
    const job = secret('heartbeat-token')
    const checks = [
      { type: 'http', name: 'page', url },
      { type: 'heartbeat', name: 'backup', period: '1h', token: job },
    ]
    const services = [{ name: 'shop', checks }]
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
    let [sessions, memories, alerts]: [string[], string[], string[]] = [[], [], []]
    let refreshed = 0

    async function refresh(): Promise<void> {
      await api('PUT', '/config', { interval: 3_600, dry_run: false })
      const { json } = await api<{ memories: readonly Memory[] }>('GET', '/memories?limit=9')
      const memory = { category: 'timing', observation: `slow ${MARKER}`, service: 'shop' }
      if (json.memories.length < 9) await api('POST', '/memories', memory)
      const page = await request(`${base}/alerts`)
      alerts = [...page.text.matchAll(/\/alerts\/(\d+)\/investigate/g)].map(([, id = '']) => id)
      if (alerts.length === 0) await deliverAlert(base, `{"alert":"${'x'.repeat(20)}"}`)
      // Half of the time a session runs and can be stopped, else another one can start.
      if (refreshed++ % 2 === 0)
        await api('POST', '/sessions/trigger', { prompt: `look ${MARKER}` })
      else await ended(ops)
      const newest = await api<{ sessions: readonly Session[] }>('GET', '/sessions?limit=3')
      sessions = newest.json.sessions.map(({ id }) => String(id))
      memories = json.memories.map(({ id }) => String(id))
    }

    /** One of a list as it is when the request is made. */
    const oneOf = (list: () => readonly string[]): fc.Arbitrary<string> =>
      fc.nat(50).map((at) => list()[at % list().length] ?? '1')
    await fuzz(t, backend.name, {
      ...{ server, base, routes: ROUTES, refresh },
      bodies: { 'POST /api/v1/webhook': Alert, 'POST /v1/chat/completions': ChatRequest },
      known: {
        ...{ 'sessions/:id': oneOf(() => sessions), 'memories/:id': oneOf(() => memories) },
        ...{ 'alerts/:id': oneOf(() => alerts), 'calls/:call': fc.constant('1') },
        'beat/:token': fc.constant(job),
        ...{
          model: fc.constantFrom('gatehouse', 'tier1'),
          role: fc.constantFrom('user', 'system'),
        },
        ...{ content: fc.constantFrom('look', MARKER), tier: fc.constantFrom('auto', '1', '3') },
        interval: fc.constantFrom(3_600, 86_400),
      },
      callers: {
        key: () => ({ authorization: `Bearer ${CHAT_KEY}` }),
        nobody: () => ({}),
        stranger: () => ({ authorization: `Bearer ${wrong}` }),
        foreign: () => ({ origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }),
      },
      best: () => 'key',
      faults: (path) => ({ 'application/json': path.startsWith('/v1/') ? CHAT_FAULT : FAULT }),
      secrets: [CHAT_KEY, MODEL_KEY, wrong, job],
    })
  },
)
