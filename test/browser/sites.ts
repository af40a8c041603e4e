import { postgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { makeLink, type LinksServer } from '../helpers/links.ts'
import { beginByHand, ended, inventoryFile, storeLines, type OpsServer } from '../helpers/ops.ts'
import { FORM_TYPE, SIGNED_ENV, addProvider, deliver, post, postForm } from '../helpers/hooks.ts'
import type { Owner } from '../helpers/owner.ts'
import { expectStatus } from '../helpers/refusals.ts'
import { replay } from '../helpers/replays.ts'
import type { Env } from '../helpers/program.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { headerText, send } from './pages.ts'

/** Paths of the pages that a kind of data makes worth looking at. */
export type Paths = readonly string[]

/** Pages of a service: one of each kind. */
type Site = { kinds: Paths }

/** A service whose names have no place to break, with a check that fails, and one without checks. */
const LONG_NAME = 'n'.repeat(180)
const INVENTORY = {
  services: [
    {
      name: LONG_NAME,
      checks: [
        { type: 'disk', name: LONG_NAME, path: '/', max_percent: 100 },
        { type: 'file_age', path: `/nothing/${LONG_NAME}`, max_age_s: 1 },
      ],
      operations: [{ name: LONG_NAME, action_type: 'restart', argv: ['true'] }],
    },
    { name: 'idle', checks: [] },
  ],
}

/** A few days' ordinary traffic: all kinds of providers, types, payloads and refusals. */
export async function fillOrdinary(base: string): Promise<Paths> {
  const token = await addProvider(base, 'ci')
  await addProvider(base, 'door-bell', { open: true })
  await addProvider(base, 'off', { enabled: false })
  const push = await deliver(base, 'code_host', '{"ref":"refs/heads/main","commits":[]}', {
    'X-CodeHost-Event': 'push',
    'X-CodeHost-Delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
  })
  const paid = '{"id":"evt_1","type":"invoice.payment_succeeded","data":{"amount":1200}}'
  await deliver(base, 'payments', paid)
  await deliver(base, 'chat', 'command=%2Fdeploy&text=main', {
    'Content-Type': 'application/x-www-form-urlencoded',
  })
  await send(base, 'generic/ci', '{"ok":true}', { Authorization: `Bearer ${token}` })
  const { id: binary } = await send(base, 'generic/door-bell', Buffer.from([0xff, 0, 0xfe]))
  await send(base, 'generic/door-bell', '', { 'X-Event-Type': 'ring' })
  await deliver(base, 'code_host', '{"ref":"refs/heads/main","commits":[]}')
  await refusals(base)
  const { id } = push.json<{ id: number }>()
  await addDestination(base, 'erp', 'https://9.9.9.9/in')
  await saveSearch(base, 'Invoices', 'q=type:invoice.*&when=7d')
  const log = [
    '/log',
    '/log?limit=3',
    '/log?rejected=1',
    `/log/${id}`,
    `/log/${id}/edit`,
    `/log/${binary}`,
  ]
  return [
    '/',
    ...log,
    '/searches',
    '/replays/new',
    '/replays',
    '/providers',
    '/providers/senders',
    '/providers/new',
    '/providers/new?scheme=hmac',
    '/destinations',
    '/destinations/-/new',
    '/destinations/erp',
    '/settings',
    '/-/docs/',
    '/-/docs/settings',
    '/-/docs/search?q=backup',
  ]
}

/** Text without a place to break it, as long as each field lets it be. */
export async function fillLong(base: string): Promise<Paths> {
  const name = 'n'.repeat(64)
  const type = 'T'.repeat(255)
  await addProvider(base, name, { open: true })
  const headers = {
    'X-Event-Type': type,
    'Webhook-Id': 'D'.repeat(255),
    'X-Value': 'V'.repeat(4_000),
    [`X-${'N'.repeat(200)}`]: headerText('ü'.repeat(200)),
    'Content-Type': `text/${'c'.repeat(200)}`,
  }
  const { id } = await send(base, `generic/${name}`, 'P'.repeat(20_000), headers)
  const element = `<a ${'k'.repeat(200)}="${'v'.repeat(2_000)}"><b>${'t'.repeat(2_000)}</b><c><d/></c></a>`
  const asXml = { ...headers, 'Content-Type': 'application/xml' }
  const { id: xml } = await send(base, `generic/${name}`, element, asXml)
  const json = JSON.stringify({ id: 'evt_long', type, ['k'.repeat(500)]: ['v'.repeat(5_000)] })
  const signed = await deliver(base, 'payments', json)
  const target = `https://example.com/${'t'.repeat(2_000)}`
  await expectStatus(200, postForm(base, '/settings', { replay_default_target: target }))
  await addDestination(base, name, `https://9.9.9.9/${'t'.repeat(2_000)}`)
  await saveSearch(base, 'N'.repeat(60), `q=${'t'.repeat(500)}&provider=generic:${name}`)
  await replay(base, id, `http://10.0.0.1/${'t'.repeat(2_000)}`)
  const { id: last } = signed.json<{ id: number }>()
  const log = [
    `/log/${id}`,
    `/log/${xml}`,
    `/log/${last}?compare=${id}`,
    `/log/${last}`,
    `/log?open=${id}`,
  ]
  const filtered = `/log?provider=generic:${name}&event_type=${type}`
  const wanted = { text: 'n'.repeat(500), highest_id: '1' }
  const job = { ...wanted, target_url: `https://9.9.9.9/${'t'.repeat(2_000)}` }
  const { headers: answer } = await request(`${base}/replays`, {
    method: 'POST',
    headers: FORM_TYPE,
    body: new URLSearchParams(job).toString(),
  })
  const replays = [`/replays/new?event_type=${type}`, '/replays', String(answer.location)]
  const pages = [
    '/searches',
    '/providers',
    '/providers/senders',
    `/providers/new?scheme=stripe&name=${name}`,
    `/providers/generic:${name}/first`,
    '/destinations',
    '/destinations/-/new',
    `/destinations/${name}`,
    '/settings',
  ]
  return ['/', '/log', filtered, ...log, ...replays, ...pages]
}

/** One that no event is sent to: only such of a type that does not come. */
async function addDestination(base: string, name: string, url: string) {
  const fields = { name, url, event_type: 'none' }
  await expectStatus(303, postForm(base, '/destinations', fields), name)
}

async function saveSearch(base: string, name: string, query: string) {
  await expectStatus(303, postForm(base, '/searches', { name, query }), name)
}

async function refusals(base: string) {
  await post(base, 'code_host', '{}')
  await post(base, 'generic/ci', '{}', { Authorization: 'Bearer wrong' })
  const listed = async () =>
    (await request(`${base}/log?rejected=1`)).text.includes('generic:ci</td>')
  await until(listed, 'the refusals to be listed')
}

/** A user's links with texts as long as each field lets it be, and the paths of the pages about them. */
export async function fillLinks(links: LinksServer): Promise<Site & { email: string }> {
  const ann = await links.user('ann')
  const bob = await links.user(`bob.${'b'.repeat(200)}`)
  const title = 'x'.repeat(200)
  const { id: long } = await makeLink(ann, `l${'-o'.repeat(31)}`, {
    url: `https://long.test/${'p'.repeat(2_000)}`,
    title,
    description: title.repeat(10),
    tags: Array.from({ length: 20 }, (_, at) => `${'t'.repeat(47)}-${at + 10}`),
    visibility: 'secure',
  })
  await ann.api('POST', `/links/${long}/owners`, { email: bob.email })
  await ann.api('POST', `/links/${long}/shares`, { email: bob.email })
  await ann.api('PUT', `/links/${long}`, { url: 'https://short.test/', title })
  await ann.get(`/l${'-o'.repeat(31)}`)
  await makeLink(ann, 'docs', { title: 'Docs', tags: ['wiki', 'team'] })
  await makeLink(ann, 'bugs', { url: 'https://tracker.test/{1}/issues/{2}?{*}' })
  const { id: gone } = await makeLink(ann, `g${'-o'.repeat(31)}`, { title })
  await ann.api('DELETE', `/links/${gone}`)
  await makeLink(ann, 'over', { archived: true })
  const history = `/links/${long}/history`
  const { json } = await ann.api<{ changes: readonly { id: number }[] }>('GET', history)
  const own = ['', '/edit', '/delete']
  return {
    email: ann.email,
    kinds: [
      '/-/',
      '/-/new',
      '/docs+',
      '/bugs+?place-1=x',
      '/dosc',
      ...own.map((at) => `/-/links/${long}${at}`),
      `/-${history}/${json.changes.at(-1)?.id}`,
      `/-${history}`,
      '/-/deleted',
      '/-/health',
      '/over',
    ],
  }
}

/** An admin with a long name, a token, a user and long tags, and the paths of the pages about them. */
export async function fillAdmin(links: LinksServer): Promise<Site & { email: string }> {
  const eve = await links.user(`eve.${'e'.repeat(200)}`, { admin: true })
  const tag = 't'.repeat(50)
  const title = 'x'.repeat(200)
  const url = `https://long.test/${'p'.repeat(2_000)}`
  const fields = { url, title, tags: [tag, 'wiki'], visibility: 'secure' }
  await makeLink(eve, `m${'-o'.repeat(31)}`, fields)
  await makeLink(eve, 'manual', { title: 'Manual', tags: ['wiki'] })
  await eve.post('/-/admin/users', { email: 'bob@example.com', name: 'n'.repeat(100) })
  await eve.api('POST', '/tokens', { name: 'n'.repeat(100), scope: 'read' })
  return {
    email: eve.email,
    kinds: [
      '/-/tags',
      '/-/tokens',
      '/-/admin/users',
      '/-/admin/links',
      '/-/admin/import',
      '/-/help',
      '/-/tags/wiki',
    ],
  }
}

/** Sessions, events, alerts and memories with long texts, and the paths of the pages about them. */
export async function fillOps(ops: OpsServer): Promise<Site> {
  const long = 'x'.repeat(180)
  await ended(ops)
  const memory = { category: long.slice(0, 90), observation: long, service: long }
  await ops.api('POST', '/memories', memory)
  await ops.api('POST', '/memories', { category: 'timing', observation: 'slow', active: false })
  const check = { type: 'tcp', name: long, host: '127.0.0.1', port: 1 }
  const made = await ops.api<{ id: number }>('POST', '/checks', { service: long, check })
  await ops.api('POST', '/mutes', { service: long, for: '1d', reason: long })
  const ends_at = new Date(Date.now() + 3_600_000)
  await ops.api('POST', '/silences', { match: { service: long }, ends_at, reason: long })
  await postgres.query(
    ops.env,
    `with action as (insert into ops.actions (service, action_type, operation, at) values ($1, 'restart', 'o', now())),
          alert as (insert into ops.alerts (fingerprint, source, service, labels, content, first_seen, last_seen, outcome, problem)
                    values ('f', 'grafana', $1, jsonb_build_object('label', $1::text), 'c', now(), now(), 'failed', $1)
                    returning id),
          texts as (insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
                    select id, content, $1, $1, now(), now() from alert, (values ('c'), ('d')) as t(content)),
          gone as (update ops.sessions set summary = 'Two of three checks failed.', cost_usd = 0.0123, prompt_text = $1,
                                           alert_id = (select id from alert))
     insert into ops.events (level, service, message, created_at, waits)
     select level, $1, $1, now(), level = 'critical' from unnest(array['info', 'warning', 'critical']) as level`,
    [long],
  )
  await postgres.query(
    ops.env,
    `insert into ops.session_lines (session_id, seq, at, kind, text, call)
     select 1, 1000 + n, now(), kind, $1, call
       from (values (1, 'text', null), (2, 'tool', 1), (3, 'result', 1), (4, 'tool', 2), (5, 'error', 2),
                    (6, 'tool', 3), (7, 'system', null), (8, 'turn', null)) as line(n, kind, call)`,
    [long],
  )
  await postgres.query(
    ops.env,
    `with notice as (insert into notices.notices (service, level, message, site, path, created_at, key)
                     select service, level, message, 'ops', '/events', now(), 'check 1'
                       from ops.events order by id desc limit 1 returning id)
     insert into notices.sends (notice_id, target, number, next_at, sent_at, problem)
     select id, $1, 0, now(), now(), null from notice
     union all select id, $1, 1, now() + interval '1 day', null, 'the receiver answered 503' from notice`,
    [long.slice(0, 64)],
  )
  await postgres.query(
    ops.env,
    `insert into ops.approvals (service, operation, argv, reason, status, created_at, expires_at, outcome)
     select $1, status, jsonb_build_array('echo', $1::text), $1, status, now(), now() + interval '1 hour', $1
       from unnest(array['pending', 'failed']) as status`,
    [long],
  )
  await postgres.query(
    ops.env,
    `with noted as (insert into ops.alert_notes (alert_id, at, author, text) values (1, now(), $1, $1)),
          learned as (insert into ops.memories (service, category, observation, confidence, active, created_at, updated_at,
                                                fades_at, session_id, tier, confirmed_by)
                      select $1, $1, $1, 0.4, true, now(), now(), now(), 1, 1, yes from (values (null), ($1)) as v(yes)),
          told as (insert into ops.events (session_id, level, service, message, created_at) values (1, 'warning', $1, $1, now()))
     insert into ops.actions (session_id, service, action_type, operation, at) values (1, $1, 'restart', $1, now())`,
    [long],
  )
  await postgres.query(
    ops.env,
    `update ops.alerts set firing_since = now() - interval '3 days' where id = 1`,
  )
  const [notice] = await postgres.query(ops.env, 'select max(id) as id from notices.notices')
  const session = await beginByHand(postgres, ops.env, long)
  await storeLines(postgres, ops.env, session, 1, 60, { text: long })
  const lists = ['/sessions', '/events', '/memories', '/cooldowns', '/alerts', '/approvals']
  return {
    kinds: [
      '/',
      ...lists,
      '/config',
      `/sessions/${session}`,
      '/sessions/1',
      '/alerts/1',
      '/memories/1',
      `/checks/${made.json.id}`,
      '/checks/new?type=http',
      '/mutes',
      '/silences',
      '/notices',
      `/notices/${String(notice?.['id'])}`,
    ],
  }
}

/** All three services in one program, behind a proxy that names the user, on a database of its own. */
export async function startSites(t: Owner): Promise<{ server: TestServer; env: Env }> {
  const env = {
    ...SIGNED_ENV,
    ...(await postgres.env(t)),
    OPS_INVENTORY: await inventoryFile(t, INVENTORY),
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8',
  }
  return { server: await startServer(t, { env }), env }
}
