import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { t } from 'tap'
import { apiOf, type Api } from '../helpers/api.ts'
import { alertmanager, deliverAlert, sample, CHAT_KEY } from '../helpers/alerts.ts'
import { postgres } from '../helpers/backends.ts'
import { runOk } from '../helpers/cli.ts'
import { SIGNED_ENV, addProvider, deliver, enable, post, postForm } from '../helpers/hooks.ts'
import { BROWSER, linksServer, makeLink } from '../helpers/links.ts'
import { addEndpoint } from '../helpers/mcp.ts'
import { calls, says, startModel } from '../helpers/model.ts'
import { ended, inventoryFile, opsServer, runSession } from '../helpers/ops.ts'
import { ROOT, type Env } from '../helpers/program.ts'
import { replay, startReceiver } from '../helpers/replays.ts'
import { addSigned, sendStandard, signingSecret } from '../helpers/senders.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { postgresPrograms } from '../runner/system-parts.ts'
import { openForward } from '../fixtures/forward-setup.ts'
import { FIXTURE_KEY, SHOPIFY_SECRET, shopifyHeaders } from '../fixtures/databases/senders.ts'
import { allIn } from '../helpers/http.ts'

// `npm run release-rows`: a day of work in all three services, through their public faces, and then the rows
// of its database, in test/fixtures/databases, for `test/db/upgrade.test.ts`. A release is frozen so: later versions must open what it left.

const receiver = await startReceiver(t, ({ path }, response) => {
  response.writeHead(path === '/down' ? 503 : 200).end('taken')
})
const seen = { category: 'timing', service: 'shop', observation: 'It takes a minute to start.' }
const model = await startModel(t, ({ step }) => {
  if (step === 0) return calls(['run_check', { service: 'shop', check: 'port' }])
  if (step > 1) return says('The shop does not answer on its port.')
  return calls(
    ['remember', seen],
    ['run_operation', { service: 'shop', operation: 'restart', reason: 'it does not answer' }],
    ['run_operation', { service: 'shop', operation: 'look', reason: 'to see what it says' }],
  )
})
const env: Env = {
  ...SIGNED_ENV,
  ...model.env,
  ...(await postgres.env(t)),
  GATEHOUSE_SECRET_KEY: FIXTURE_KEY,
  GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8',
  GATEHOUSE_GROUPS_HEADER: 'Remote-Groups',
  HOOKS_REPLAY_TARGETS: '127.0.0.1',
  OPS_CHAT_API_KEY: CHAT_KEY,
  OPS_NOTIFY_URL: `${receiver.url}/notices`,
  OPS_INVENTORY: await inventoryFile(t, {
    services: [
      {
        name: 'shop',
        checks: [
          { type: 'tcp', name: 'port', host: '127.0.0.1', port: 1, every: '10s', retries: 0 },
        ],
        operations: [
          { name: 'restart', action_type: 'restart', argv: ['true'], approval: true },
          { name: 'look', action_type: 'look', argv: ['echo', 'three orders wait'] },
        ],
      },
      { name: 'host', checks: [{ type: 'disk', name: 'root', path: '/', max_percent: 100 }] },
    ],
  }),
}
const server = await startServer(t, { env })
await fillHooks(server.hooks)
await fillLinks()
await fillOps()
await server.stop()
dump()

/** Every way to prove a delivery, bodies of all shapes, refusals, and everything that is made of events. */
async function fillHooks(base: string) {
  const api = taking(apiOf(base))
  const must = (path: string, fields: Readonly<Record<string, string>>) =>
    posted(base, path, fields)
  await addProvider(base, 'open', { open: true })
  const token = await addProvider(base, 'token')
  const secret = await addSigned(base, 'standard')
  await must('/providers', {
    name: 'shopify',
    trust_mode: 'signed',
    scheme: 'shopify',
    secret: SHOPIFY_SECRET,
  })
  await enable(base, 'generic:shopify', true)
  await must('/providers/generic%3Atoken/alarm', { expected_interval_s: '3600' })

  for (const kind of ['paid', 'failed', 'paid']) {
    const body = {
      id: `evt_${kind}`,
      type: `payment.${kind}`,
      data: { customer: 'Ada Ltd, Köln' },
    }
    await deliver(base, 'payments', JSON.stringify(body))
  }
  const push = { 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'fixture-push' }
  await deliver(base, 'code_host', '{"ref":"refs/heads/main"}', push)
  await deliver(base, 'chat', '{"type":"event_callback","event_id":"Ev1"}')
  await sendStandard(base, 'standard', secret, '{"type":"invoice.paid","total":42}')
  await post(base, 'generic/shopify', '{"order":7}', shopifyHeaders('{"order":7}'))
  const bearer = { Authorization: `Bearer ${token}` }
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const odd: readonly (readonly [string | Uint8Array, Readonly<Record<string, string>>])[] = [
    ['', { 'Content-Type': 'text/plain' }],
    [Buffer.from('00ff5c0a0d00', 'hex'), { 'Content-Type': 'application/octet-stream' }],
    ['payload=%7B%22order%22%3A8%7D&note=gr%C3%BCn', form],
    [Buffer.from('caf\xe9', 'latin1'), { 'Content-Type': 'text/plain; charset=iso-8859-1' }],
    [gzipSync('{"zipped":"yes"}'), { 'Content-Encoding': 'gzip' }],
    [`{"large":"${'x'.repeat(20_000)}"}`, {}],
    ['{"emoji":"😀","separator":"\u2028","nul":"\\u0000"}', { 'X-Event-Type': 'odd.ünicode' }],
  ]
  for (const [body, headers] of odd) await post(base, 'generic/open?from=a day', body, headers)
  for (const body of ['{"n":1}', '{"n":2}']) await post(base, 'generic/token', body, bearer)
  for (const provider of ['code_host', 'generic/token', 'generic/nobody']) {
    await post(base, provider, '{}')
  }

  await runOk('endpoint add agent --allow replay', { env, secretShown: true })
  await addEndpoint(base, 'reader')
  await api('POST', '/searches', { name: 'Failed payments', query: 'event_type=payment.failed' })
  await must('/settings', {
    retention_max_age_days: '0',
    retention_max_rows: '1234',
    sse_retry_ms: '1500',
  })
  const sent = '--provider payments --sign-with standard --sign-secret -'
  await runOk(`destination add erp ${receiver.url}/erp ${sent}`, { env, input: signingSecret() })
  await runOk(`destination add down ${receiver.url}/down`, { env })
  await deliver(base, 'payments', '{"id":"evt_sent","type":"payment.paid"}')
  const { events } = (await api<{ events: readonly { id: number }[] }>('GET', '/events')).json
  const [newest] = events
  await replay(base, newest?.id ?? 0, `${receiver.url}/again`)
  await must(`/log/${newest?.id}/replay`, {
    target_url: `${receiver.url}/edited`,
    body: '{"n":3}',
  })
  await api('POST', '/events/replay', {
    target_url: `${receiver.url}/job`,
    provider: 'payments',
    highest_id: newest?.id,
  })
  const words = [`${receiver.url}/laptop`, '--from', base, '--name', 'laptop', '--since', '1']
  const laptop = openForward(t, words)
  await until(() => receiver.received.some(({ path }) => path === '/laptop'), 'a forwarded event')
  await laptop.stop()
  await until(() => receiver.received.some(({ path }) => path === '/down'), 'a failed delivery')
}

/** People and a group, links of each kind with all that belongs to them, visits, an import and deletions. */
async function fillLinks() {
  const links = linksServer(server, env)
  const [owner, bob] = [await links.user('ann', { admin: true }), await links.user('bob')]
  const ann = { ...owner, api: taking(owner.api) }
  const rows: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ['docs', { url: 'https://example.com/docs', append_path: true, tags: ['team', 'wiki'] }],
    ['payroll', { visibility: 'private', title: 'Löhne', tags: ['hr'] }],
    ['vault', { visibility: 'secure', url: 'https://example.com/vault' }],
    ['find', { url: 'https://example.com/search?q={*}' }],
    ['sale', { expires_at: '2099-01-01T00:00:00Z', max_visits: 3 }],
    ['old', { aliases: ['older', 'oldest'] }],
    ['gone', {}],
    ['back', {}],
  ]
  const made = new Map<string, string>()
  for (const [slug, fields] of rows) made.set(slug, (await makeLink(ann, slug, fields)).id)
  await makeLink(bob, 'lunch', { description: 'Where we eat today.' })
  const path = (slug: string) => `/links/${made.get(slug)}`
  await ann.api('POST', `${path('payroll')}/owners`, { email: bob.email })
  await ann.api('POST', `${path('vault')}/shares`, { email: bob.email })
  await ann.api('POST', `${path('payroll')}/shares`, { email: 'group:hr' })
  const unused = { url: 'https://old.test/', title: 'Not used any more', aliases: ['older'] }
  await ann.api('PUT', path('old'), { ...unused, archived: true })
  for (const slug of ['gone', 'back']) await ann.api('DELETE', path(slug))
  await ann.api('POST', `${path('back')}/restore`)
  for (const agent of [BROWSER, 'curl/8.5.0', 'Slackbot-LinkExpanding 1.0']) {
    const headers = { 'user-agent': agent, referer: 'https://wiki.example.com/' }
    for (const slug of ['docs/page', 'sale', 'find/kitchen', 'dosc'])
      await bob.get(`/${slug}`, headers)
  }
  await runOk(['import', 'test/fixtures/link-exports/yourls.csv', '--owner', bob.email], {
    env,
  })
  await runOk(['token', 'create', bob.email, '--scope', 'read'], { env, secretShown: true })
  await runOk(['user', 'add', 'cyd@example.com'], { env })
  await runOk(['user', 'disable', 'cyd@example.com'], { env })
}

/** Sessions of both kinds, a failing check, alerts in every state, and what people said about them. */
async function fillOps() {
  const ops = opsServer(server, env)
  const api = taking(ops.api)
  await runOk(`notify add desk ${receiver.url}/notices`, { env })
  await runOk(`notify add pager ${receiver.url}/down`, { env })
  await ended(ops)
  await runSession(ops, 'Customers say that the shop is slow. Find out why.', 3)
  await runSession(ops, 'What is new?')
  await until(
    async () =>
      receiver.received.some(({ path, body }) => path === '/notices' && /port/.test(String(body))),
    'a notice of the failing check',
    60_000,
  )
  await api('POST', '/checks', {
    service: 'backup',
    check: { type: 'heartbeat', name: 'nightly', period: '24h', grace: '1h' },
  })
  await api('POST', '/memories', {
    category: 'timing',
    observation: 'The nightly backup takes 40 minutes.',
    service: 'backup',
  })
  await posted(ops.base, '/config/status', { services: 'shop' })
  const hour = new Date(Date.now() + 3_600_000).toISOString()
  await api('POST', '/silences', {
    match: { alertname: 'Noise*' },
    ends_at: hour,
    reason: 'known',
  })
  await api('POST', '/mutes', { service: 'host', ends_at: hour, reason: 'new disks' })
  await api('POST', '/mutes', { service: 'shop', every: 'sun 02:00-04:00', reason: 'it moves' })
  const deliveries = [
    alertmanager('ShopDown', 'firing', { severity: 'critical', service: 'shop' }),
    alertmanager('NoiseOfDisks'),
    alertmanager('Slow'),
    alertmanager('Slow', 'resolved'),
    sample('grafana-v12-firing.json'),
    sample('zabbix-firing.json'),
    sample('uptime-kuma-down.json'),
  ]
  for (const body of deliveries) await deliverAlert(ops.base, body)
  const { alerts } = (await api<{ alerts: readonly { id: number }[] }>('GET', '/alerts')).json
  await api('POST', `/alerts/${alerts.at(-1)?.id}/notes`, { text: 'Ann looks at it.' })
  await runOk('assistant add desk', { env, secretShown: true })
  await ended(ops)
}

/** An API whose every call must be taken. */
function taking(api: Api): Api {
  return async (method, path, ...rest) => {
    const answer = await api<never>(method, path, ...rest)
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.text}`)
    return answer
  }
}

/** Posts a form that must be taken. */
async function posted(base: string, path: string, fields: Readonly<Record<string, string>>) {
  const { status, text } = await postForm(base, path, fields)
  if (status >= 400) throw new Error(`POST ${path} answered ${status}: ${text.slice(0, 200)}`)
}

/** Writes the rows, without what pg_dump says about itself and without the migrations. */
function dump() {
  const args = [
    '--data-only',
    '--column-inserts',
    '--exclude-schema=gatehouse',
    env['DATABASE_URL'] ?? '',
  ]
  const pgDump = join(postgresPrograms() ?? '', 'pg_dump')
  const text = execFileSync(pgDump, args, { encoding: 'utf8', maxBuffer: 2 ** 26 })
  const from = text.indexOf('-- Data for Name')
  const rows = text
    .slice(text.indexOf('\n\n', from))
    .replaceAll(/^--(?: .*)?\n/gm, '')
    .replaceAll(/^\\unrestrict .*\n/gm, '')
    .replaceAll(/\n{2,}/g, '\n')
  const tables = [...new Set(allIn(rows, /^INSERT INTO ([\w.]+)/gm))]
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    version: string
  }
  const migrations = readdirSync(join(ROOT, 'sql/migrations')).length
  const day = new Date().toISOString().slice(0, 10)
  const head = `-- ${version}: the rows after a day of work on ${day}, for a database with migrations 1 to ${migrations}.\n`
  const emptied = ['hooks.providers', 'hooks.settings', 'ops.settings']
  const deletes = emptied.map((name) => `delete from ${name};\n`).join('')
  const file = join(ROOT, `test/fixtures/databases/${version}.sql`)
  writeFileSync(file, head + deletes + rows.trimStart())
  t.ok(tables.length > 60, `${file}: ${tables.length} tables`)
}
