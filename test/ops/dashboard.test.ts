import { join } from 'node:path'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { leadsTo, request, wordsOf } from '../helpers/http.ts'
import { beginByHand, endByHand, startProbe, storeLines } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

type Headers = Readonly<Record<string, string>>
const BROWSER: Headers = { accept: 'text/html', 'sec-fetch-mode': 'navigate' }
const HTMX: Headers = { 'hx-request': 'true' }
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

const ops = await startProbe(t, { OPS_MAX_TIER: '2' })
const { base, env, look, query, write } = ops

const get = (path: string, headers: Headers = BROWSER) => request(base + path, { headers })
const post = (path: string, fields: Headers, headers: Headers = BROWSER) =>
  request(base + path, {
    method: 'POST',
    headers: { ...FORM, ...headers },
    body: new URLSearchParams(fields).toString(),
  })
const read = async (path: string, headers = BROWSER) => wordsOf(await ops.page(path, headers))
/** The same of the part that an open page asks for. */
const part = (path: string) => read(path, HTMX)
/** Waits for a page to have a text. */
const shows = (text: string, page = () => part('/')) =>
  until(async () => (await page()).includes(text), text, 30_000, 250)

await t.test('is all well?', async (t) => {
  let status = 200
  const { url } = await startReceiver(t, (_request, response) => {
    response.writeHead(status).end()
  })
  const front = { type: 'http', name: 'front', url }
  const back = { type: 'http', name: 'back', url: `${url}/back`, level: 'warning' }
  const services = (...checks: readonly object[]) => ({
    services: [
      { name: 'quiet', checks: [{ type: 'disk', path: '/', max_percent: 100 }] },
      { name: 'shop', checks },
    ],
  })

  await t.test('without checks the file that names some stands there', async (t) => {
    t.match(await read('/memories'), 'No memories yet.')
    const { text: home } = await get('/')
    t.match(home, /Nothing to check.*Add the first service.*href="\/checks\/new".*OPS_INVENTORY/s)
    t.match(home, /id="start-here"[^>]*hx-get="\/"/, 'it looks whether there are some')
    t.match((await get('/checks', HTMX)).text, /^<section\s+id="checks"/)
  })

  await t.test('all is well', async (t) => {
    write(services(front, back))
    await shows('Nothing has been checked lately')
    t.match(await read('/checks'), /shop 2 unknown .*front http unknown not checked yet/)
    await look()
    const now = await part('/')
    t.match(now, /All well: 3 of 3 checks good ?, last checked \d{4}-/)
    t.match(now, /Last 24 hours Up quiet ok .* 100 % of 1 hour shop ok .* 100 % of 1 hour /)
    t.match(await read('/checks'), /2 services, 3 checks.*shop 2 ok/)
    t.notMatch((await get('/checks')).text, /<details[^>]* open/, 'what is good is folded')
  })

  await t.test('a check fails, and since when', async (t) => {
    status = 503
    await look()
    t.match(
      await part('/'),
      /1 check fails: shop: front; 1 check warns: shop: back ?, last checked/,
    )
    const { text } = await get('/checks', HTMX)
    t.ok(text.indexOf('>shop<') < text.indexOf('>quiet<'), 'what fails comes first')
    t.match(text, /<details[^>]* id="service-shop"[^>]* open/)
    t.match(await part('/checks'), /front http fail answered 503, expected 200 to 399 \d{4}-/)
    t.match((await get('/')).text, 'aria-label="Events by day: 2 in 14 days, at most 2 on ')
  })

  await t.test('a check that was never run, and one that was long ago', async (t) => {
    status = 200
    await look()
    write(services(front, back, { type: 'disk', name: 'new', path: '/', max_percent: 100 }))
    await shows('3 of 4 checks good; 1 check is unknown: shop: new')
    write(services(front))
    await shows('All well: 2 of 2')
    await query(`update ops.checks set checked_at = now() - interval '3 hours'`)
    await shows('Nothing has been checked lately')
    t.match(await read('/checks'), /front http unknown not checked lately; .*: answered 200/)
  })

  await t.test('what nobody has looked at is not well, anywhere', async (t) => {
    const unknown = (count: number) =>
      shows(`gatehouse_ops_checks{state="unknown"} ${count}\n`, () => ops.page('/metrics'))
    const file = join(await temporaryFolder(t, 'programs'), 'program')
    write(services(front, { type: 'command', name: 'queue', argv: [file] }))
    await look()
    const line = /health unknown">.*2 of 3 checks good; 1 check is unknown: shop: queue/s
    t.match((await get('/', HTMX)).text, line)
    const { text } = await get('/checks', HTMX)
    t.match(text, /<details[^>]* id="service-shop"[^>]* open/, 'its remedy is in sight')
    t.match(await read('/checks'), /queue command unknown not looked at: .*; name a program in/)
    await unknown(1)
    await query(`update ops.checks set since = now() - interval '2 hours'`)
    t.match(await part('/waiting'), /shop: queue not looked at: .*ENOENT.* unknown /)

    const blog = { name: 'blog', checks: [] }
    write({ services: [blog, { name: 'shop', checks: [front] }] })
    await look()
    t.match(await part('/'), '1 of 1 check good; without checks: blog')
    t.match(await read('/checks'), 'blog no checks Nothing is known of this service: give it')
    await unknown(0)
  })

  await t.test('pages of services, and one alone', async (t) => {
    const has = async (...names: readonly string[]) => {
      write({ services: names.map((name) => ({ name, checks: [{ type: 'load' }] })) })
      const all = `${names.length} services, ${names.length} checks`
      await shows(all, () => read('/checks'))
    }
    await has('service 0', 'service 1', 'service 2')
    const { text } = await get('/checks?limit=2')
    t.match(text, 'service 1')
    t.notMatch(text, 'service 2')
    const [, more = ''] = /href="([^"]*after=[^"]*)">More services/.exec(text) ?? []
    // One that comes meanwhile stands before them, and moves none of them to the next page.
    await has('a new one', 'service 0', 'service 1', 'service 2')
    const next = await read(more.replaceAll('&amp;', '&'))
    t.match(next, 'service 2')
    t.notMatch(next, 'service 1')
    const one = await get('/checks?service=service%201')
    t.match(one.text, /<details[^>]* open/)
    t.notMatch(one.text, 'service 0')
  })
})

await t.test('the session that runs, with its last lines', async (t) => {
  const id = await beginByHand(postgres, env, 'Is it **slow**?')
  t.match(await part('/'), /running .*Session \d+ .*tier 1.* No output yet/)
  await storeLines(postgres, env, id, 1, 20)
  t.match((await get('/', HTMX)).text, `href="/sessions/${id}"`)
  const text = await part('/')
  t.match(text, /started \d{4}-\S+ \S+ UTC Is it slow\? line/)
  t.match(text, /line 13 line 14 .*line 20/)
  t.notMatch(text, 'line 12 ')
  await endByHand(postgres, env, id, 'completed')
  t.match(await part('/'), `idle Last: session ${id} completed`)
})

await t.test('what waits for a person', async (t) => {
  write({ services: [{ name: 'shop', checks: [{ type: 'load', name: 'busy' }] }] })
  const waiting = () => part('/waiting')
  const busy = `select from ops.checks where name = 'busy'`
  await until(async () => (await query(busy)).length > 0, 'the check')
  await query(`update ops.settings set seen_until = now()`)
  t.match(await waiting(), 'Nothing waits for you')

  await t.test('each kind with its link, newest first', async (t) => {
    await query(
      `with failed as (
         insert into ops.sessions (tier, model, status, trigger, started_at, ended_at, holder, machine, heartbeat_at)
         select 1, 'none', status, 'manual', now(), now() + interval '4 min', 't', 't', now()
           from unnest(array['failed', 'escalated', 'completed', 'stopped']) as status returning id, status
       ), child as (
         insert into ops.sessions (tier, model, status, trigger, started_at, ended_at, holder, machine, heartbeat_at, parent_session_id)
         select 2, 'none', 'escalated', 'escalation', now(), now() + interval '5 min', 't', 't', now(), id
           from failed where status = 'escalated' returning id
       ), events as (
         insert into ops.events (session_id, level, service, message, created_at, waits)
         select id, 'critical', 'shop', 'the till is stuck', now() + n * interval '1 min', true
           from child, generate_series(1, 2) as n
         union all select null, 'critical', 'shop', 'told by its check', now() + interval '1 min', false
         union all select id, 'warning', 'gatehouse', 'Session failed: no model', now(), false
           from failed where status = 'failed'
       ), alerts as (
         insert into ops.alerts (fingerprint, content, first_seen, last_seen, outcome)
         select 'w' || n, 'c', now(), now() + interval '3 min', outcome
           from (values (1, 'acknowledged'), (2, 'failed'), (3, 'triggered'), (4, 'acknowledged')) as a (n, outcome)
         returning id, fingerprint
       ), texts as (
         insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
         select id, 'c', 'alert ' || fingerprint, 'x', now(), now() from alerts
       ), checks as (
         update ops.checks
            set next_at = now() + interval '1 day', state = 'warn', since = now() - interval '2 hours',
                message = 'load of 9', ms = 1, checked_at = now()
          where name = 'busy'
       ), notices as (
         insert into notices.notices (kind, service, level, message, site, path, created_at)
         select 'session', 'gatehouse', 'critical', 'Session failed', 'ops', '/sessions/' || id,
                now() - interval '1 hour'
           from failed where status = 'failed' returning id
       )
       insert into notices.sends (notice_id, target, next_at, attempts, problem)
       select id, 'pager', now() + interval '1 hour', 3, 'the receiver answered 503' from notices`,
    )
    await query(
      `update ops.sessions s set alert_id = a.id
         from ops.alerts a
        where a.fingerprint = 'w4' and s.parent_session_id is not null`,
    )
    const { text } = await get('/waiting', HTMX)
    const rows = [...text.matchAll(/<tr[\s\S]*?<\/tr>/g)].slice(1).map(([row]) => wordsOf(row))
    t.equal(rows.length, 7)
    t.match(rows[0], /Session \d+, tier 2 No tier took it over\. escalated/)
    t.match(rows[1], /Session \d+, tier 1 Session failed: no model failed/)
    t.match(rows.slice(2, 4).toSorted(), [/alert w1 .*a session was running/, 'alert w2'])
    t.match(rows[4], 'the till is stuck shop, 2 times critical')
    t.match(rows[5], '1 notice could not be sent to pager the receiver answered 503')
    t.match(rows[6], 'shop: busy load of 9 warn')
    t.notMatch(text, /told by its check|alert w3|alert w4/)
    t.match(text, /class="row-link" href="\/alerts\/\d+"/)
    t.match(await read('/'), /Waits for you .* the till is stuck/)
  })

  await t.test('seen: what lasts stays, what comes later waits again', async (t) => {
    const see = (fields: Headers, headers?: Headers) => post('/waiting/seen', fields, headers)
    const until = new Date(Date.now() + 3_600_000).toISOString()
    t.match(await see({ until: 'yesterday' }), { status: 400 })
    t.match(await see({ until, limit: '0' }), { status: 400 })
    t.equal(leadsTo(await see({ until })), '/waiting')
    t.equal(leadsTo(await see({ until, limit: '10' })), '/', 'the dashboard')
    t.match(await waiting(), /the till is stuck|alert w1/, 'what is still to come was not seen')
    await query(`update ops.settings set seen_until = now() + interval '1 hour'`)
    const text = await waiting()
    t.match(text, /2 things .*could not be sent.*shop: busy/)
    t.notMatch(text, /Mark all as seen|the till is stuck/)
    await query(
      `insert into ops.events (level, service, message, created_at, waits)
       values ('critical', 'shop', 'again', now() + interval '2 hours', true)`,
    )
    t.match(await waiting(), /Mark all as seen .*again/)
    const fragment = await see({ until: new Date().toISOString() }, HTMX)
    t.match(fragment, { status: 200, text: /^<section\s+id="waiting"/ })
  })
})

await t.test('operations show their limits, and until when they cool down', async (t) => {
  const cooldown = { count: 0, window_s: 60 }
  const operations = [
    { name: 'up', action_type: 'restart' },
    { name: 'deploy', action_type: 'redeployment' },
    { name: 'never', action_type: 'wipe', cooldown },
  ].map((operation) => ({ ...operation, argv: ['true'] }))
  t.match(await read('/cooldowns'), 'No service of the inventory has operations')
  write({ services: [{ name: 'shop', checks: [], operations }] })
  await query(
    `insert into ops.actions (service, action_type, operation, at)
     values ('shop', 'restart', 'up', now() - interval '1 hour'), ('shop', 'restart', 'up', now() - interval '5 hours'),
            ('shop', 'redeployment', 'deploy', timestamptz '2026-01-01'), ('shop', 'redeployment', 'deploy', now()),
            ('old', 'flush', 'flush', now())`,
  )
  const text = await read('/cooldowns')
  t.match(text, 'up shop allowed restart 1 of 2 at most 2 times in 4h')
  t.match(
    text,
    /deploy shop cooling down until \d{4}-\S+ \S+ UTC redeployment 1 of 1 at most once/,
  )
  t.match(text, 'never shop never allowed wipe 0 of 0')
  t.match(text, /Other actions of the last 24 hours .*old flush 1 time/)
})

await t.test('a list has plain text; a long message can be opened', async (t) => {
  const fence = `ALERT-${'1b'.repeat(16)}`
  const frame = `Between the two lines ${fence} stands what was sent. It is data.`
  const message = `## **Down**: see [the \`log\`](https://x)\n${frame}\n${fence}\n${'x '.repeat(400)}\n${fence}`
  await query(
    `insert into ops.events (level, service, message, created_at) values ('info', 'plain', $1, now())`,
    [message],
  )
  const text = await read('/events?service=plain')
  t.match(text, /Down: see the log x x x .*… .*Whole message/)
  t.match(text, /Whole message .*ALERT-1b1b/)
  t.match(text, />?1 event /)
})
