import { t } from 'tap'
import { readOpenMetrics } from '../fixtures/open-metrics.ts'
import { postgres } from '../helpers/backends.ts'
import { checkDocument } from '../helpers/document.ts'
import { request } from '../helpers/http.ts'
import { deliver, post, startHooks } from '../helpers/hooks.ts'
import { expectStatus } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

const { base, server, env } = await startHooks(t, postgres)
const PAGES = ['/', '/status', '/log', '/log?rejected=1', '/providers', '/settings']
const BROWSER = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

/** What programs use; pages and the tool protocol are described elsewhere. */
const OPERATIONS = `
GET /api/v1/destinations
GET /api/v1/destinations/{name}
GET /api/v1/destinations/{name}/deliveries
PUT /api/v1/destinations/{name}
POST /api/v1/destinations
DELETE /api/v1/destinations/{name}
PUT /api/v1/destinations/{name}/enabled
POST /api/v1/destinations/{name}/retry
POST /api/v1/destinations/{name}/test
POST /webhooks/{provider}
POST /webhooks/generic/{name}
POST /webhooks/generic/{name}/{token}
GET /events
GET /api/v1/events
GET /api/v1/events/export
GET /api/v1/events/{id}
GET /api/v1/events/{id}/payload
POST /api/v1/events/{id}/replay
POST /api/v1/events/replay
GET /api/v1/replay-jobs
GET /api/v1/replay-jobs/{job}
DELETE /api/v1/replay-jobs/{job}
GET /api/v1/searches
POST /api/v1/searches
PUT /api/v1/searches/{id}
DELETE /api/v1/searches/{id}
GET /api/v1/providers
GET /api/v1/stats
GET /healthz
`
  .trim()
  .split('\n')

t.test('every page is whole, guarded by its headers, and free of inline code', async (t) => {
  for (const path of PAGES) {
    const { status, headers, text } = await request(base + path)
    t.equal(status, 200, path)
    t.match(headers, { 'cache-control': 'no-store' })
    t.match(text, /^\s*<!doctype html>.*<\/html>\s*$/is)
    t.notMatch(text, /<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|href="javascript:/i)
  }
})

await t.test('the dashboard: the first webhook, then what needs somebody', async (t) => {
  const dashboard = async () => (await request(`${base}/`)).text
  const empty = await dashboard()
  t.match(empty, 'Create a URL')
  t.notMatch(empty, /id="(recent|activity)"/)
  await deliver(base, 'payments', '{"first":1}')
  const quiet = await dashboard()
  t.match(quiet, /All is well.*"Events per hour over 24 hours: 1 in all, at most 1 at \d{4}-/s)
  t.notMatch(quiet, /start-here|class="panel problems"/)
  await postgres.query(
    env,
    `insert into hooks.destinations
            (name, url, providers, event_types, members, ordered, timeout_s, position,
             disabled_at, disabled_by)
     select '<b>' || n, 'http://127.0.0.1:9/', '[]', '[]', '[]', false, 30, 0, now(), 'failures'
       from generate_series(1, 12) n`,
  )
  const text = await until(async () => {
    const now = await dashboard()
    return now.includes('12 destinations failing') && now
  }, 'the destinations to be seen')
  t.notMatch(text, /All is well|<b>1/)
  t.match(text, /<details[^>]* id="more-problems">\s*<summary>4 more<\/summary>/)
  await postgres.query(env, 'delete from hooks.destinations')
})

t.test('an error is a page for a browser and a problem for everybody else', async (t) => {
  const cases: readonly (readonly [string, string, number])[] = [
    ['GET', '/log/12345678', 404],
    ['DELETE', '/log', 405],
    ['POST', '/providers/nobody/enabled', 415],
  ]
  for (const [method, path, status] of cases) {
    const name = `${method} ${path}`
    const program = await request(base + path, { method })
    t.match([program.status, program.json()], [status, { status, instance: path }], name)
    const browser = await request(base + path, { method, headers: BROWSER })
    t.match(browser, { status, headers: { 'content-type': /^text\/html/ } }, name)
    t.match(browser.text, String(status))
    const script = await request(base + path, {
      method,
      headers: { ...BROWSER, 'HX-Request': 'true' },
    })
    t.match(script.headers['content-type'], /problem/, `${name} from htmx`)
  }
  const receiver = await request(`${base}/webhooks/nobody`, { method: 'POST', headers: BROWSER })
  t.match(receiver.headers, { 'content-type': 'application/problem+json' })
})

t.test('the answer’s id is that of its log line', async (t) => {
  const { headers } = await request(`${base}/providers`)
  const id = String(headers['x-request-id'])
  const line = await until(
    () => server.logs().find((text) => text.includes(`"${id}"`)),
    'its line',
  )
  t.match(JSON.parse(line), { msg: 'request', method: 'GET', route: '/providers', status: 200 })
})

t.test('the pages’ files are revalidated by their tags', async (t) => {
  const { text } = await request(`${base}/`)
  const links = [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)]
  const paths = new Set(links.map((match) => match[1] ?? ''))
  t.ok(paths.size >= 3, 'a style sheet, a script and an icon at least')
  const types: Readonly<Record<string, RegExp>> = {
    css: /^text\/css/,
    js: /^text\/javascript/,
    svg: /^image\/svg\+xml/,
  }
  for (const path of paths) {
    const { status, headers, body } = await request(`${base}${path}`)
    t.match({ status, empty: body.length === 0 }, { status: 200, empty: false }, path)
    t.match(headers['content-type'], types[path.split('.').at(-1) ?? ''])
    const etag = String(headers.etag)
    t.match(etag, /^"[^"]+"$/)
    const known = await request(`${base}${path}`, { headers: { 'If-None-Match': etag } })
    t.match([known.status, known.text, known.headers], [304, '', { etag }])
  }
  const style = `${base}/assets/app.css`
  const { etag } = (await request(style)).headers
  for (const [list, status] of [
    [`"a,b" , W/"c",W/${etag}`, 304],
    ['*', 304],
    ['W/"other", "more"', 200],
    ['"*"', 200],
  ] as const) {
    const answer = await request(style, { headers: { 'If-None-Match': list } })
    t.equal(answer.status, status, list)
  }
  for (const path of ['/assets/none.js', '/assets/../package.json', '/assets/%2e%2e/x']) {
    await expectStatus(404, request(`${base}${path}`), path)
  }
})

t.test('GET /metrics', async (t) => {
  await expectStatus(202, deliver(base, 'code_host', '{"a":1}'))
  await expectStatus(401, post(base, 'code_host', '{"a":2}'))
  const { headers, text } = await request(`${base}/metrics`)
  t.match(headers['content-type'], /^application\/openmetrics-text; version=1\.0\.0;/)
  const families = readOpenMetrics(text)
  const requests = families.get('gatehouse_http_requests')
  const route = 'route="/webhooks/:provider"'
  const of = (code: number): number | undefined =>
    requests?.samples.find(({ labels }) => labels.includes(route) && labels.includes(`"${code}"`))
      ?.value
  t.equal(of(202), 2, 'the pattern, not the path, and the status')
  t.equal(of(401), 1)
  const refused = families.get('gatehouse_hooks_rejections')?.samples
  t.match(refused, [{ name: 'gatehouse_hooks_rejections_total', value: 1 }])
  const all = families.get('gatehouse_http_request_seconds')?.samples ?? []
  const times = all.filter(({ labels }) => labels.includes('kind="delivery"'))
  const count = times.find(({ name }) => name.endsWith('_count'))?.value
  t.equal(count, 2, 'the delivery that was refused is not among them')
})

t.test('the document of the hooks endpoints', async (t) => {
  const document = await checkDocument(t, base, { operations: OPERATIONS, unrefused: '/healthz' })
  t.match(document.servers, [{ url: base }, { url: '/' }])
  const health = await request(`${base}/healthz`)
  t.same(
    [...Object.keys(health.json<object>()), 'reasons'].toSorted(),
    Object.keys(document.components.schemas['Health']?.properties ?? {}).toSorted(),
  )

  // Text that is no id means "from now on", so neither is an integer.
  t.match(document.paths['/events']?.['get'], {
    parameters: [
      { name: 'provider' },
      { name: 'event_type' },
      { name: 'last_event_id', in: 'query', schema: { type: 'string' } },
      { name: 'last-event-id', in: 'header', schema: { type: 'string' } },
    ],
  })
})

t.test('a status that can’t be read is in the log with its reason, and on the page', async (t) => {
  const readPart = () => request(`${base}/status`, { headers: { 'HX-Request': 'true' } })
  const part = await readPart()
  t.match(part, { status: 200, text: /^<div\s+id="status"[\s\S]*<section id="providers"/ })
  t.notMatch(part.text, 'Database out of reach')
  await postgres.query(env, 'alter table hooks.rejection_minutes rename to rejection_minutes_away')
  // The one before is good for a second.
  const line = await until(async () => {
    await request(`${base}/healthz`)
    return server.logs().find((text) => text.includes('"status not read"'))
  }, 'the status to be read again')
  const error = { level: 'error', error: /rejection_minutes/, stack: /readProviders|status\.ts/ }
  t.match(JSON.parse(line), error)
  t.match(await readPart(), { status: 200, text: 'Database out of reach' })
})
