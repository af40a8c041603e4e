import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { t } from 'tap'
import { postgres } from '../../helpers/backends.ts'
import { refuseCommands, runOk } from '../../helpers/cli.ts'
import { postForm } from '../../helpers/hooks.ts'
import { callTool, errorOf, modern, type Endpoint } from '../../helpers/mcp.ts'
import { ended, inventoryFile, startOps } from '../../helpers/ops.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { keepSecret, shownSecret } from '../../helpers/secrets.ts'
import { until } from '../../helpers/until.ts'

const env = await postgres.env(t)
const shop = await startReceiver(t, (_, response) => void response.writeHead(200).end())
const checks = [{ type: 'http', name: 'page', url: shop.url }]
const ops = await startOps(t, postgres, {
  ...env,
  OPS_INVENTORY: await inventoryFile(t, { services: [{ name: 'shop', checks }] }),
})
await ended(ops)
const { base, api } = ops

async function addAssistant(args: string): Promise<Endpoint> {
  const { stdout } = await runOk(`assistant add ${args}`, { env, secretShown: true })
  return { url: `${base}/mcp/ops`, token: keepSecret('assistant-token', stdout.trim()) }
}

/** The names of the tools that it is offered. */
async function toolsOf(endpoint: Endpoint) {
  const { text } = await modern(endpoint, 'tools/list')
  return JSON.parse(text).result.tools.map(({ name }: { name: string }) => name)
}

async function valueOf(endpoint: Endpoint, tool: string, args = {}) {
  return (await callTool(endpoint, tool, args))['structuredContent']
}

const READING = [
  'list_checks',
  'get_check_history',
  'list_sessions',
  'get_session',
  'list_events',
  'list_alerts',
  'get_alert',
  'recall',
]
const reader = await addAssistant('reader')
const starter = await addAssistant('starter --allow start')
const listed = async () => (await runOk('assistant list --json', { env })).stdout

t.test('an assistant reads checks, sessions, events, alerts and memories', async (t) => {
  t.same(await toolsOf(reader), READING)
  const states = await until(async () => {
    const found = await valueOf(reader, 'list_checks', { service: 'shop', state: 'ok' })
    return String(found?.['total']) === '1' ? found : undefined
  }, 'the check to be well')
  t.match(states, { checks: [{ service: 'shop', name: 'page', state: 'ok' }] })
  const [check] = states['checks'] as unknown as readonly { id: number }[]
  t.match(await valueOf(reader, 'get_check_history', { id: check?.id }), { name: 'page' })
  t.match(await valueOf(reader, 'list_checks', { state: 'fail' }), { total: 0, checks: [] })

  t.match(await valueOf(reader, 'list_sessions', { limit: 1 }), {
    sessions: [{ status: 'completed', trigger: 'scheduled' }],
  })
  const session = await valueOf(reader, 'get_session', { id: 1 })
  t.match(session, { session: { id: 1, summary: /checks/ } })
  t.notOk(JSON.stringify(session).includes('marker'), 'what finds its processes stays here')
  await api('POST', '/memories', { category: 'timing', observation: 'slow at noon' })
  t.match(await valueOf(reader, 'recall'), { memories: [{ observation: 'slow at noon' }] })
  t.match(await valueOf(reader, 'list_events'), { events: [] })
  t.match(await valueOf(reader, 'list_alerts'), { alerts: [] })
})

t.test('an assistant starts a session only where it may', async (t) => {
  t.same(await toolsOf(starter), [...READING, 'start_session'])
  const made = await valueOf(starter, 'start_session', { prompt: 'look at the shop' })
  t.match(made, { session: { tier: 1, trigger: 'api', prompt_text: 'look at the shop' } })
  await ended(ops)
  t.match((await runOk('audit --json', { env })).stdout, /token starter/)
  const call = { name: 'start_session', arguments: { prompt: 'look' } }
  const refused = await modern(reader, 'tools/call', call)
  t.match(refused.text, 'There is no tool under this name')
})

t.test(
  'what is refused: unknown ids, wrong arguments, and everybody without a token',
  async (t) => {
    const id = 9_999
    for (const [tool, args, code] of [
      ['get_session', { id }, 'not_found'],
      ['get_alert', { id }, 'not_found'],
      ['get_check_history', { id }, 'not_found'],
      ['list_checks', { state: 'bad' }, 'invalid_argument'],
      ['list_events', { limit: 1_000 }, 'invalid_argument'],
      ['recall', { other: 1 }, 'invalid_argument'],
    ] as const) {
      t.equal(errorOf(await callTool(reader, tool, args)).code, code, tool)
    }
    for (const token of ['', `${reader.token}x`]) {
      const { status, headers } = await modern({ ...reader, token }, 'tools/list')
      t.same([status, headers['www-authenticate']], [401, 'Bearer'])
    }
    const foreign = await modern(reader, 'tools/list', {}, { origin: 'http://evil.example' })
    t.equal(foreign.status, 403)
  },
)

t.test('the commands: what they refuse, and a revoked token stops at once', async (t) => {
  await refuseCommands(t, { env, state: listed }, [
    ['assistant add reader', 1, /there is an assistant "reader" already/],
    ['assistant add UPPER', 1, /the name must be 1 to 64 of a-z/],
    ['assistant revoke nobody', 1, /there is no assistant "nobody"/],
    ['assistant add x --allow all', 2, /start/],
  ])
  t.match(JSON.parse(await listed()), [
    { name: 'reader', may_start: false, last_used_at: /^\d/ },
    { name: 'starter', may_start: true, last_used_at: /^\d/ },
  ])
  await runOk('assistant revoke reader', { env })
  t.equal((await modern(reader, 'tools/list')).status, 401)
})

t.test('the page adds an assistant, shows its token once, and revokes it', async (t) => {
  const page = await postForm(base, '/config/assistants', { name: 'tab', allow_start: 'true' })
  t.match(page, { status: 200, text: /^<section id="assistants"/ })
  const made = { url: `${base}/mcp/ops`, token: shownSecret(page, 'assistant-token') }
  const shown = /id="assistant-configuration"[^>]*><code>(.*?)<\/code>/s.exec(page.text)?.[1]
  const headers = { Authorization: `Bearer ${made.token}` }
  t.same(JSON.parse((shown ?? '').replaceAll('&quot;', '"')), {
    mcpServers: { 'gatehouse-ops': { type: 'http', url: made.url, headers } },
  })
  const again = await ops.page('/config')
  t.match(again, /id="card-of-tab"[^]*?<dd>read and start sessions<\/dd>[^]*?<dd>never<\/dd>/)
  t.notMatch(again, made.token)
  t.same(await toolsOf(made), [...READING, 'start_session'])

  const revoked = await postForm(base, '/config/assistants/tab/revoke', {})
  t.equal(revoked.status, 200)
  t.notMatch(revoked.text, 'id="card-of-tab"')
  t.equal((await modern(made, 'tools/list')).status, 401)
})

const node = promisify(execFile)
/** A program that posts a form, and prints the status. */
const POSTS = `fetch(process.argv[1], { method: 'POST', body: new URLSearchParams({ name: 'own' }) })
  .then((answer) => answer.text().then((text) => console.log(answer.status, text)))`

t.test('the page refuses other names, other origins and processes of sessions', async (t) => {
  const add = (name: string, headers = {}) =>
    postForm(base, '/config/assistants', { name }, headers)
  const before = await listed()
  for (const name of ['', '-x', 'a b', 'a'.repeat(65)]) {
    t.match(await add(name), { status: 400, text: /must/ }, name)
  }
  t.match(await add('starter'), { status: 409, text: /there is an assistant .+starter.+ already/ })
  t.equal((await add('x', { Origin: 'https://evil.example' })).status, 403)
  t.equal((await postForm(base, '/config/assistants/nobody/revoke', {})).status, 404)
  const marked = { env: { STARTED_BY_GATEHOUSE: 'f00d' } }
  for (const path of ['/config/assistants', '/config/assistants/starter/revoke']) {
    const { stdout } = await node(process.execPath, ['-e', POSTS, base + path], marked)
    t.match(stdout, /^403 [^]*A program that a session or an operation has started/, path)
  }
  t.equal(await listed(), before)
})
