import { STATUS_CODES } from 'node:http'
import fc from 'fast-check'
import { openHooksService } from '../../../commands/services/hooks.ts'
import type { Backend } from '../../helpers/backends.ts'
import { NOBODY, STANDARD, TOKEN, UPGRADE, openKeep } from './hooks-keep.ts'
import type { Keep } from './hooks-keep.ts'
import { messages, mirrored, toolsOf } from './mcp.ts'
import type { Caller, FuzzProfile } from './profile.ts'
import { typeOf } from './promises.ts'
import { routesOf } from './routes.ts'
import { MARKER, oddCursor } from './values.ts'
import type { WireAnswer, WireRequest } from './wire.ts'
import type { Owner } from '../../helpers/owner.ts'
import { secretKey, standardHeaders } from '../../helpers/senders.ts'
import type { ServerProcess } from '../../helpers/server-process.ts'
import { SECRETS, SIGNED, signatureHeaders, startHooksProcess } from '../../helpers/hooks.ts'

/** Starts the hooks service, and gives what a fuzz has to know of it. */
export async function hooksToFuzz(
  t: Owner,
  backend: Backend,
): Promise<{ server: ServerProcess; profile: FuzzProfile }> {
  const { server, base } = await startHooksProcess(t, backend, {
    ...{ GATEHOUSE_SECRET_KEY: secretKey(), HOOKS_REPLAY_TARGETS: '127.0.0.1:9' },
    ...(backend.name === 'postgres' && { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8' }),
  })
  const keep = openKeep(base)
  await keep.refresh()
  const tools = await toolsOf(keep.endpoint())
  const callers = callersOf(keep)
  const profile: FuzzProfile = {
    ...{ base, callers, pools: keep.pools, refresh: keep.refresh, refusalFault },
    table: await routesOf(t, openHooksService),
    known: KNOWN,
    forms: FORMS,
    needs: { 'GET /relay': ['name', 'target'] },
    query: [
      'provider',
      'event_type',
      'since',
      'cursor',
      'limit',
      'text',
      'json',
      'rejected',
      'name',
      'target',
    ],
    bodies: {
      'POST /webhooks/:provider': delivery,
      'POST /webhooks/generic/:name': delivery,
      'POST /webhooks/generic/:name/:token': delivery,
      'POST /mcp/:endpoint': messages(tools, KNOWN),
    },
    best: ({ path }) =>
      path === '/relay' ? 'forwarder' : path.startsWith('/mcp/') ? 'tool' : 'sender',
    mayFail: [],
    mayWarn: {},
    secrets: [...Object.values(SECRETS)],
  }
  return { server, profile }
}

function callersOf(keep: Keep): Readonly<Record<string, Caller>> {
  const sender: Caller = ({ target, body = Buffer.alloc(0) }) => {
    const name = /\/webhooks\/(?:generic\/)?([^/?]*)/.exec(target)?.[1]
    const provider = SIGNED.find((signed) => signed === name)
    if (provider !== undefined) return Object.entries(signatureHeaders(provider, body))
    if (name === STANDARD) return Object.entries(standardHeaders(keep.secret(), body))
    return name === TOKEN ? [['authorization', `Bearer ${keep.token()}`]] : []
  }
  return {
    sender,
    nobody: () => [],
    tool: (request) => [['authorization', `Bearer ${keep.endpoint().token}`], ...mirrored(request)],
    forwarder: () => UPGRADE,
    stale: (request) =>
      sender(request).map(([name, value]) => [
        name,
        value.replace(/\d/, (d) => `${9 - Number(d)}`),
      ]),
    foreign: () => [
      ['origin', 'http://evil.example'],
      ['sec-fetch-site', 'cross-site'],
    ],
    proxied: () => [
      ['x-forwarded-for', '203.0.113.7, 127.0.0.1'],
      ['x-forwarded-proto', 'https'],
      ['remote-email', 'ann@example.com'],
    ],
  }
}

const delivery = fc.oneof(
  fc
    .record(
      {
        ...{ id: fc.constantFrom('evt_1', 'evt_2', '', MARKER), event_id: fc.nat(9).map(String) },
        type: fc.constantFrom('push', 'url_verification', MARKER, 'x'.repeat(300), '\0'),
        ...{
          challenge: fc.constantFrom('c', MARKER, null),
          payload: fc.jsonValue({ maxDepth: 2 }),
        },
      },
      { requiredKeys: [] },
    )
    .map(text),
  fc.constantFrom('payload=%7B%7D', 'a=1&command=%2Fgo', '{"type":"\\ud800"}', '{"id":"a\\u0000"}'),
)

const name = fc.nat(6).map((at) => `~name.${at}~`)
const provider = fc.oneof(
  name.map((one) => `generic:${one}`),
  fc.constantFrom(...SIGNED),
)
const id = fc.nat(9).map((at) => `~event.${at}~`)

const KNOWN: FuzzProfile['known'] = {
  'providers.name': provider,
  ...{ name, id, provider, endpoint: fc.constant('keep'), token: fc.constant('~token.0~') },
  event_type: fc.constantFrom('kept', 'push'),
  since: fc.oneof(id, fc.constantFrom('0', '2026-01-01T00:00:00Z', '2026-01-01')),
  last_event_id: id,
  limit: fc.constantFrom('1', '2', '200'),
  cursor: fc.oneof(fc.constant('WyIyMDI2LTAxLTAxVDAwOjAwOjAwLjAwMFoiLDFd'), oddCursor),
  text: fc.constantFrom('evt', 'kept', MARKER),
  json: fc.constantFrom('id:"evt_1"', 'type:"kept"', 'a.b:1', 'payload:null'),
  rejected: fc.constant('1'),
  target: fc.constant(NOBODY),
  target_url: fc.constantFrom(NOBODY, ''),
  replay_default_target: fc.constantFrom(NOBODY, ''),
  timeout_s: fc.constant(1),
  trust_mode: fc.constantFrom('token', 'signed', 'open'),
  acknowledge_open: fc.constantFrom('true', 'on'),
  secret: fc.constantFrom('', `whsec_${Buffer.alloc(24).toString('base64')}`),
  enabled: fc.constantFrom('true', 'true', 'false'),
  overlap: fc.constantFrom('0', '3600', '2592000'),
  expected_interval: fc.constantFrom('', '1h', '30d'),
  rejection_burst: fc.constantFrom('', '10/5m', '10 in 5m'),
  allow_replay: fc.constantFrom('on', 'true', ''),
  retention_max_age_days: fc.constantFrom('0', '30', '2147483647'),
  retention_max_rows: fc.constantFrom('0', '50000', '2147483647'),
  sse_retry_ms: fc.constantFrom('250', '3000'),
}

const FORMS: FuzzProfile['forms'] = {
  'POST /providers': ['name', 'trust_mode', 'acknowledge_open', 'secret?'],
  'POST /providers/:name/enabled': ['enabled'],
  'POST /providers/:name/alarm': ['expected_interval?', 'rejection_burst?'],
  'POST /providers/:name/rotate': ['overlap?', 'secret?'],
  'POST /log/:id/replay': ['target_url?'],
  'POST /settings': [
    ...[
      'retention_max_age_days?',
      'retention_max_rows?',
      'sse_retry_ms?',
      'replay_default_target?',
    ],
  ],
  'POST /settings/endpoints': ['name', 'allow_replay?'],
}

/** hooks.md section 7: a problem; a page for who navigates; JSON-RPC where tools are called. */
function refusalFault(answer: WireAnswer, { target, headers }: WireRequest): string | undefined {
  const type = typeOf(answer)
  const asks = headers.some(([key, value]) => /^accept$/i.test(key) && value.includes('text/html'))
  const navigates = asks || headers.some(([, value]) => value === 'navigate')
  if (type.startsWith('text/html')) return navigates ? undefined : 'a page for no browser'
  const body: unknown = JSON.parse(answer.body.toString('utf8'))
  if (!isObject(body)) return 'no object'
  if (type === 'application/json' && target.includes('/mcp/')) {
    return 'jsonrpc' in body && 'error' in body ? undefined : 'no answer of JSON-RPC'
  }
  if (type !== 'application/problem+json') return `its type is ${type}`
  const members = Object.keys(body).join()
  if (members !== 'type,title,status,detail,instance') return `its members are ${members}`
  const { status, title } = { status: 0, title: '', ...body }
  if (status !== answer.status || title !== STATUS_CODES[status]) return 'another status in it'
  return undefined
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function text(value: unknown): string {
  return JSON.stringify(value) ?? ''
}
