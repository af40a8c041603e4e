import type { Test } from 'tap'
import { CHAT_KEY, deliverAlert, startBriefs } from '../helpers/alerts.ts'
import type { Api, ApiResponse } from '../helpers/api.ts'
import { postgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import type { Model } from '../helpers/model.ts'
import {
  beginByHand,
  endByHand,
  ended,
  eventsOf,
  inventoryFile,
  memoriesOf,
  opsServer,
  sessionsOf,
  trigger,
  type Memory,
  type OpsServer,
  type Session,
} from '../helpers/ops.ts'
import type { Env } from '../helpers/program.ts'
import { refuses } from '../helpers/refusals.ts'
import type { TestServer } from '../helpers/server.ts'
import { hasMembers, unbound, type Check, type Contract } from './frame.ts'

/** Members of answers that docs/contract/ops.md does not have. */
export const ADDED = {} as const

/** The ops service with a model that writes briefs; sessions are the probe's and end by themselves. */
type OpsFace = OpsServer & { briefs: Model }

/** Variables that the checks need, and the model that they name. */
export async function opsEnv(t: Test): Promise<{ env: Env; briefs: Model }> {
  const briefs = await startBriefs(t)
  const OPS_INVENTORY = await inventoryFile(t, { services: [] })
  return { briefs, env: { ...briefs.env, OPS_CHAT_API_KEY: CHAT_KEY, OPS_INVENTORY } }
}

/** Waits for the session at the start, so that the rows of ops begin with none. */
export async function openOps(server: TestServer, env: Env, briefs: Model): Promise<OpsFace> {
  const ops = opsServer(server, env)
  await ended(ops)
  return { ...ops, briefs }
}

type Face = OpsFace
type Detail = Session & Record<'parent_session' | 'child_sessions' | 'chain_cost', unknown>
type OpsCheck = Check<OpsFace>

const NOTE = { category: 'contract', observation: 'seen' }
/** More of each than a list has without a limit. */
const FILL = [
  `insert into ops.sessions (tier, model, status, trigger, started_at, ended_at, holder, machine, heartbeat_at)
   select 1, 'none', 'completed', 'api', now(), now(), '', '', now() from generate_series(1, 60)`,
  `insert into ops.events (level, message, created_at)
   select 'info', 'filled', now() from generate_series(1, 110)`,
  `insert into ops.memories (category, observation, confidence, active, tier, created_at, updated_at, fades_at)
   select 'filled', 'note ' || n, 0.1, true, 0, now(), now(), now() from generate_series(1, 210) n`,
]
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const INTRODUCES = unbound('it says what the document or the service is')
const NO_ROUTE =
  'test/ops/api.test.ts > an unknown path and a wrong method match no route: 404 as JSON'
const WRONG_KEY =
  'test/ops/alerts/webhook.test.ts > 401 for any other token, whatever else is wrong'
const CHAIN = 'test/ops/agent/api-sessions.test.ts > escalation from tier 1 to 3'
const DOCUMENT = 'test/ops/api.test.ts > the document of the ops API'
const PROMPT =
  'test/ops/alerts/webhook-briefs.test.ts > model, prompt and endpoint are looked up on every request'
const KEY = 'test/ops/alerts/webhook-briefs.test.ts > the key is looked up on every request'
const TIER = 'test/ops/alerts/webhook-briefs.test.ts > tier: read, clamped and taken out'
const COOLDOWNS = 'test/ops/api.test.ts > cooldowns: the last 24 hours, the newest action first'

/** Runs this while a session runs that nothing ends. */
async function whileRunning(face: Face, during: () => Promise<unknown>) {
  const id = await beginByHand(postgres, face.env)
  await during()
  await endByHand(postgres, face.env, id, 'completed')
}

/** The only member of a JSON answer, whose rows have these members. */
async function listOf(t: Test, api: Api, name: string, section: string) {
  const { status, json } = await api<Record<string, readonly object[]>>('GET', `/${name}`)
  t.same([status, Object.keys(json)], [200, [name]])
  const rows = json[name] ?? []
  for (const row of rows) hasMembers(t, row, 'ops', section)
  return rows
}

function isError(t: Test, answer: ApiResponse<unknown>, status: number) {
  refuses(t, answer, [status])
  t.equal(answer.headers['content-type'], 'application/json')
}

const triggers: OpsCheck = async (t, face) => {
  const prompt = 'why?'
  const made = await face.api<Session>('POST', '/sessions/trigger', { prompt })
  t.equal(made.status, 201)
  hasMembers(t, made.json, 'ops', 'Session')
  t.match(made.json, { trigger: 'api', tier: 1, prompt_text: prompt, ended_at: null })
  const { id } = await ended(face, made.json.id)
  const { json } = await face.api<Detail>('GET', `/sessions/${id}`)
  const { parent_session, child_sessions, chain_cost, ...session } = json
  t.same([parent_session, child_sessions, chain_cost], [null, [], 0])
  hasMembers(t, session, 'ops', 'Session')
}

const oneAtATime: OpsCheck = (t, face) =>
  whileRunning(face, async () => {
    isError(t, await face.api('POST', '/sessions/trigger', { prompt: 'two' }), 409)
  })

const acknowledges: OpsCheck = (t, face) =>
  whileRunning(face, async () => {
    const { status, json } = await deliverAlert(face.base, 'disk is full')
    t.equal(status, 202)
    t.match(json, { session_id: null, status: 'acknowledged', message: /\S/ })
    t.same(Object.keys(json), ['session_id', 'status', 'message'])
  })

const starts: OpsCheck = async (t, face) => {
  face.briefs.answer(['Look at the disk first.'])
  const { status, json } = await deliverAlert(face.base, 'disk is full', FORM)
  const { session_id } = json
  t.same([status, json], [202, { session_id, status: 'triggered', tier: 1 }])
  const session = await ended(face, session_id ?? 0)
  t.match(session, { trigger: 'alert', prompt_text: 'Look at the disk first.' })
}

const health: OpsCheck = async (t, { api }) => {
  const headers = { host: 'anywhere.example' }
  const { status, json } = await api('GET', '/health', undefined, headers)
  t.same([status, json], [200, { status: 'ok' }])
}

const config: OpsCheck = async (t, { api }) => {
  const before = await api<{ interval: number }>('GET', '/config')
  t.equal(before.status, 200)
  hasMembers(t, before.json, 'ops', 'Config')
  const updated = { ...before.json, tier2_model: 'other' }
  const readOnly = { max_tier: 1, state_dir: '/tmp', results_dir: '/tmp', repos_dir: '/tmp' }
  const change = await api('PUT', '/config', { tier2_model: 'other', ...readOnly })
  t.same([change.status, change.json], [200, updated])
  t.same((await api('GET', '/config')).json, updated, 'persisted, and nothing else changed')
  const all = { interval: 7_200, tier1_model: 'a', tier2_model: 'b', tier3_model: 'c' }
  t.match((await api('PUT', '/config', { ...all, dry_run: true })).json, { ...all, dry_run: true })
  t.same((await api('PUT', '/config', before.json)).json, before.json)
  for (const interval of [0, -1, 1.5, '60']) {
    isError(t, await api('PUT', '/config', { interval }), 400)
  }
}

const memories: OpsCheck = async (t, { api, ...ops }) => {
  const made = await api<Memory>('POST', '/memories', NOTE)
  t.equal(made.status, 201)
  hasMembers(t, made.json, 'ops', 'Memory')
  t.match(made.json, { ...NOTE, service: null, confidence: 0.7, active: true })
  const { id } = made.json
  const change = { observation: 'again', confidence: 0.9, active: false }
  const path = `/memories/${id}`
  const put = await api<Memory>('PUT', path, change)
  t.match([put.status, put.json], [200, { id, ...change, category: NOTE.category }])
  hasMembers(t, put.json, 'ops', 'Memory')
  await api('POST', '/memories', { ...NOTE, service: 'web', confidence: 1, active: false })
  await listOf(t, api, 'memories', 'Memory')
  const list = async (query: string) =>
    (await memoriesOf({ api, ...ops }, query)).map(({ confidence }) => confidence)
  t.same(await list('?category=contract'), [1, 0.9], 'by confidence')
  t.same(await list('?category=contract&service=web'), [1])
  t.same(await list('?category=contract&limit=1&offset=1'), [0.9])
  t.match(await api('DELETE', path), { status: 204, text: '' })
  isError(t, await api('DELETE', path), 404)
  for (const missing of Object.keys(change)) {
    isError(t, await api('PUT', path, { ...change, [missing]: undefined }), 400)
  }
  for (const missing of Object.keys(NOTE)) {
    isError(t, await api('POST', '/memories', { ...NOTE, [missing]: undefined }), 400)
  }
}

const sessions: OpsCheck = async (t, face) => {
  await ended(face, (await trigger(face)).id)
  const rows = await listOf(t, face.api, 'sessions', 'Session')
  const times = (rows as readonly Session[]).map(({ started_at }) => started_at)
  t.same(times, times.toSorted().toReversed())
  t.same(await sessionsOf(face, '?limit=1&offset=1'), rows.slice(1, 2))
  t.same(await sessionsOf(face, '?offset=9999'), [], 'an empty array')
}

const limits: OpsCheck = async (t, { api, env }) => {
  for (const text of FILL) await postgres.query(env, text)
  for (const [name, limit] of Object.entries({ sessions: 50, events: 100, memories: 200 })) {
    const { json } = await api<Record<string, readonly object[]>>('GET', `/${name}`)
    t.equal(json[name]?.length, limit, name)
  }
}

const badRequests: OpsCheck = async (t, { api }) => {
  for (const body of [{}, { prompt: '' }])
    isError(t, await api('POST', '/sessions/trigger', body), 400)
  for (const path of ['/sessions/x', '/sessions?limit=-1', '/events?offset=-1']) {
    isError(t, await api('GET', path), 400)
  }
}

const notFound: OpsCheck = async (t, { api }) => {
  refuses(t, await api('GET', '/sessions/0'), [404, undefined, 'session not found'])
  refuses(t, await api('DELETE', '/memories/0'), [404, undefined, 'memory not found'])
}

const onlyJson: OpsCheck = async (t, { api }) => {
  for (const path of ['/sessions/trigger', '/memories']) {
    isError(t, await api('POST', path, 'prompt=look', FORM), 415)
  }
}

/** The sentences of docs/contract/ops.md. */
export const OPS: Contract<OpsFace> = {
  'Operations-Agent Service': {
    'This document covers': INTRODUCES,
    'Other documents cover': INTRODUCES,
  },
  '1. What the service does': {
    'An agent runs investigation': CHAIN,
    'A web dashboard': async (t, { base }) => {
      for (const path of ['', 'sessions', 'events', 'memories', 'cooldowns', 'config']) {
        const page = await request(`${base}/${path}`)
        t.match(page, { status: 200, headers: { 'content-type': /^text\/html/ } }, path)
      }
    },
    'The JSON API exposes': INTRODUCES,
    'The service serves its own': DOCUMENT,
    'An inbound alert webhook': starts,
    'A session is run one at': oneAtATime,
  },
  '2. Resources': {
    'JSON names are snake_case.': config,
    'Nullable fields are present': sessions,
  },
  Session: { 'Field |': triggers, 'Detail response adds': CHAIN },
  Event: {
    '`id` (int64)': async (t, face) => {
      await postgres.query(
        face.env,
        `insert into ops.events (level, message, created_at) values ('info', 'seen', now())`,
      )
      t.ok((await listOf(t, face.api, 'events', 'Event')).length > 0)
      t.match(await eventsOf(face, '?level=info'), [{ level: 'info' }])
    },
  },
  Memory: { '`id` (int64)': memories },
  'Cooldown summary': {
    '`service` (string)': async (t, { api, env }) => {
      await postgres.query(
        env,
        `insert into ops.actions (service, action_type, operation, at)
         values ('web', 'restart', 'op', now())`,
      )
      t.equal((await listOf(t, api, 'cooldowns', 'Cooldown')).length, 1)
    },
  },
  Config: { 'Field |': config },
  'Error body': { '`{error: <string>}`.': notFound },
  '3. States': {
    'Sessions are either': oneAtATime,
    'no session running | POST `/sessions/trigger`': triggers,
    'session running | POST `/sessions/trigger`': oneAtATime,
    'no session running | POST `/webhook`': starts,
    'session running | POST `/webhook`': acknowledges,
  },
  '4. Endpoints': {
    'All under': INTRODUCES,
    'All `/api/v1` responses': onlyJson,
    'GET | `/api/v1/health`': health,
    'GET | `/api/v1/sessions` ': sessions,
    'GET | `/api/v1/sessions/{id}`': triggers,
    'POST | `/api/v1/sessions/trigger`': triggers,
    'GET | `/api/v1/events`': 'test/ops/api.test.ts > filters by level and service combine',
    'GET | `/api/v1/memories`': memories,
    'POST | `/api/v1/memories`': memories,
    'PUT | `/api/v1/memories/{id}`': memories,
    'DELETE | `/api/v1/memories/{id}`': memories,
    'GET | `/api/v1/cooldowns`': COOLDOWNS,
    'GET | `/api/v1/config`': config,
    'PUT | `/api/v1/config`': config,
    'GET | `/api/openapi.yaml`': DOCUMENT,
    'GET | `/api/docs/`': DOCUMENT,
    'POST | `/api/v1/webhook`': starts,
    'Config updates are persisted': config,
    '`interval` if given': config,
    'A route for fetching': NO_ROUTE,
    'A request under `/api/v1/`': NO_ROUTE,
    'The HTML dashboard routes':
      'test/ops/agent/stream.test.ts > a finished session is replayed, from anywhere, and closes',
  },
  'POST `/api/v1/webhook`': {
    'Headers: `Authorization:': starts,
    'Body: any non-empty body.': starts,
    'When it is JSON': TIER,
    'A model turns the payload':
      'test/ops/alerts/webhook-briefs.test.ts > what the model is asked: data in a fence, and no tools',
    'The brief is stored': starts,
    'The system prompt for this': PROMPT,
    'Success 202:': starts,
    'Clients poll GET': starts,
    'Already running 202:': acknowledges,
    'Sessions started this way': starts,
    'OPS_CHAT_API_KEY |': KEY,
    'OPS_WEBHOOK_MODEL |': PROMPT,
    'OPS_WEBHOOK_SYSTEM_PROMPT |': PROMPT,
  },
  '5. Authentication': {
    'The `/api/v1` JSON endpoints': sessions,
    'The health endpoint must': health,
    'The webhook requires': WRONG_KEY,
    'Missing or wrong token:': WRONG_KEY,
    'Key not configured: 503.': KEY,
  },
  '6. Events': {
    'The API emits no': unbound('there is nothing to be seen'),
    'The API resource named Event': INTRODUCES,
  },
  '7. Errors': {
    'Body: `{error:': NO_ROUTE,
    'Internal details are not': 'test/ops/api.test.ts > 500 says no more than that',
    '400 | missing or empty': badRequests,
    '404 |': notFound,
    '409 |': oneAtATime,
    '415 |': onlyJson,
    '500 |': 'test/ops/api.test.ts > 500 says no more than that',
    '400 | empty or whitespace':
      'test/ops/alerts/webhook.test.ts > 400 when blank, although a session runs',
    '401 |': WRONG_KEY,
    '202 |': acknowledges,
    '502 |':
      'test/ops/alerts/webhook-briefs.test.ts > 502 when there is no brief: the alert is kept',
    '503 |': KEY,
  },
  '8. Limits': {
    'sessions `limit` default |': limits,
    'events `limit` default |': limits,
    'memories `limit` default |': limits,
    '`offset` default |': badRequests,
    'cooldown window |': COOLDOWNS,
    'memory `confidence` default |': memories,
    'health response time |': unbound('a time is measured by the bench, never by a test'),
    'webhook tier |': TIER,
    'There is no rate limiting': unbound('what is not there is seen in no answer'),
  },
  '9. Versioning': {
    'All JSON endpoints sit': NO_ROUTE,
    'The machine-readable': DOCUMENT,
    'Response envelopes': unbound('it is about later versions'),
  },
}
