import { t, type Test } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { allIn, leadsTo, request, type Response } from '../helpers/http.ts'
import {
  ended,
  memoriesOf,
  sessionsOf,
  startGate,
  startOps,
  trigger,
  type Memory,
} from '../helpers/ops.ts'
import { expectStatus, refuses } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

type Headers = Readonly<Record<string, string>>
const BROWSER: Headers = { accept: 'text/html', 'sec-fetch-mode': 'navigate' }
const HTMX: Headers = { 'hx-request': 'true' }
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const PROBE = `<img src=x onerror=alert(1)>"'</pre><script>alert(1)</script>`
const ESCAPED = '&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&lt;/pre&gt;&lt;script&gt;'

await t.test('pages and forms', async (t: Test) => {
  const gate = await startGate(t)
  const ops = await startOps(t, postgres, { OPS_INVENTORY: gate.inventory })
  const { base, api } = ops
  gate.open()
  await ended(ops)

  const get = (path: string, headers: Headers = BROWSER) => request(base + path, { headers })
  const post = (path: string, fields: Headers = {}, headers: Headers = BROWSER) =>
    request(base + path, {
      method: 'POST',
      headers: { ...FORM, ...headers },
      body: new URLSearchParams(fields).toString(),
    })
  const isHtml = (t: Test, { status, headers }: Response, wanted: number) =>
    t.same([status, headers['content-type']], [wanted, 'text/html; charset=utf-8'])
  const isPage = (t: Test, answer: Response, wanted: number, text = '</html>') => {
    isHtml(t, answer, wanted)
    t.match(answer.headers['content-security-policy'], "default-src 'self'")
    t.match(answer.text, /^<!doctype html>[\s\S]*<\/html>/)
    t.match(answer.text, text)
  }
  const isFragment = (t: Test, answer: Response, wanted: number) => {
    isHtml(t, answer, wanted)
    t.notMatch(answer.text, '<html')
  }
  const isJson = (t: Test, answer: Response, status: number, error: string | RegExp = /\S/) =>
    refuses(t, answer, [status, undefined, error])

  await t.test('every page is a whole one', async (t) => {
    isPage(t, await get('/memories?service=none'), 200, 'No memories match these filters.')
    isPage(t, await get('/events?service=shop'), 200, 'No events match these filters.')
    isPage(t, await get('/events'), 200, 'No events yet.')
    const pages = '/ /sessions /sessions/1 /memories /cooldowns /alerts /config /checks'
    for (const path of `${pages} /waiting /approvals /checks?service=none`.split(' ')) {
      isPage(t, await get(path), 200)
    }
    t.match((await get('/')).text, 'aria-label="Sessions by day: 1 in 14 days, at most 1 on ')
  })

  await t.test('what an open page asks for again and again reads no lists', async (t) => {
    await ops.query('alter table ops.events rename to away')
    const fragment = await get('/', HTMX)
    await ops.query('alter table ops.away rename to events')
    isFragment(t, fragment, 200)
    t.match(fragment.text, /^<section\s+id="now"/)
    isPage(t, await get('/'), 200)
  })

  await t.test('what is refused is a page for a browser, else {error}', async (t) => {
    for (const [path, status] of [
      ['/nothing', 404],
      ['/sessions/999', 404],
      ['/sessions/none', 404],
      ['/sessions/1?before=x', 400],
      ['/sessions?after=9999999999999999_1', 400],
      ['/sessions?when=never', 400],
      ['/sessions?from=2027-02-30', 400],
      ['/sessions?zone=Nowhere', 400],
      ['/waiting?limit=0', 400],
      ['/memories/999', 404],
      ['/sessions/1/stop', 405],
    ] as const) {
      isPage(t, await get(path), status)
      isJson(t, await get(path, {}), status)
    }
    isJson(t, await get('/api/v1/nothing'), 404)
    isPage(t, await request(`${base}/`, { headers: { ...BROWSER, host: 'evil.example' } }), 403)
    const foreign = { ...BROWSER, 'sec-fetch-site': 'cross-site' }
    isPage(t, await post('/config', {}, foreign), 403)
  })

  await t.test('trigger: 303, or the fragment', async (t) => {
    const started = await expectStatus(
      303,
      post('/sessions/trigger', { prompt: 'look', tier: '2' }),
    )
    const session = await ended(ops)
    t.match(session, { trigger: 'manual', tier: 2, prompt_text: 'look' })
    t.equal(leadsTo(started), `/sessions/${session.id}`)
    const fragment = await post('/sessions/trigger', { prompt: 'again', tier: 'auto' }, HTMX)
    isFragment(t, fragment, 200)
    const { id } = await ended(ops)
    t.match(fragment.text, `href="/sessions/${id}"`)
    t.equal(fragment.headers['hx-redirect'], `/sessions/${id}?done=started&of=session+${id}`)
  })

  await t.test('trigger: refusals', async (t) => {
    for (const [fields, page, json] of [
      [
        { prompt: ' ' },
        'What to look into is required',
        'prompt is required and must be a string that is not blank',
      ],
      [{ prompt: 'x', tier: '4' }, 'Tier must be auto, 1, 2 or 3', 'tier must be auto, 1, 2 or 3'],
    ] as const) {
      isPage(t, await post('/sessions/trigger', fields), 400, page)
      isFragment(t, await post('/sessions/trigger', fields, HTMX), 400)
      isJson(t, await post('/sessions/trigger', fields, {}), 400, json)
    }
    const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
    isJson(
      t,
      await request(`${base}/sessions/trigger`, json),
      415,
      'The body must be a form: application/x-www-form-urlencoded.',
    )
    const large = await post('/sessions/trigger', { prompt: 'x'.repeat(1_048_577) }, {})
    isJson(t, large, 413, 'The form exceeds 1048576 bytes.')
  })

  await t.test('as long as the fields allow, in any script, counted as browsers do', async (t) => {
    // A line end is sent as CR LF and counts as one.
    const prompt = `${'漢'.repeat(99_998)}\r\nx`
    await expectStatus(303, post('/sessions/trigger', { prompt }))
    t.equal((await ended(ops)).prompt_text, prompt.replace('\r', ''))
    isPage(t, await post('/sessions/trigger', { prompt: 'x'.repeat(100_001) }), 400)
  })

  await t.test('while a session runs: trigger is 409, stop stops it', async (t) => {
    gate.shut()
    const { id } = await trigger(ops)
    await until(() => gate.waiting() === 1, 'the session to wait')
    const page = await post('/sessions/trigger', { prompt: 'typed <b>' })
    isPage(t, page, 409, 'A session is running')
    t.match(page.text, 'typed &lt;b&gt;</textarea', 'what was typed stays')
    isFragment(t, await post('/sessions/trigger', { prompt: 'x' }, HTMX), 409)
    t.match((await get(`/sessions/${id}`)).text, 'id="stop"')
    const stopped = await post(`/sessions/${id}/stop`, {}, HTMX)
    isFragment(t, stopped, 200)
    t.match(stopped.text, 'stopping…')
    t.equal((await ended(ops, id)).status, 'stopped')
    gate.open()
    isPage(t, await post(`/sessions/${id}/stop`), 409)
    isFragment(t, await post(`/sessions/${id}/stop`, {}, HTMX), 409)
    isPage(t, await post('/sessions/9999/stop'), 404)
    isPage(t, await post('/sessions/none/stop'), 404)
    t.notMatch((await get(`/sessions/${id}`)).text, 'id="stop"')
  })

  await t.test('a memory: shown in its form, and what is refused', async (t) => {
    const wanted = { category: 'dependency', observation: 'slow', confidence: '0.5' }
    const { json } = await api<Memory>('POST', '/memories', { ...wanted, confidence: 0.5 })
    const path = `/memories/${json.id}`
    const change = { observation: 'slower', confidence: '0.9', active: 'true' }
    t.match((await get(path)).text, /<textarea[^>]*>\s*slow<\/textarea>/)
    t.notMatch((await get('/memories')).text, 'action="/memories/', 'a list has no forms of rows')
    for (const [where, fields, says] of [
      ['/memories', { ...wanted, category: '' }, 'Category is required'],
      ['/memories', { ...wanted, confidence: 'x' }, 'Confidence must be a number from 0 to 1'],
      [path, { ...change, observation: '' }, 'Observation is required'],
    ] as const) {
      isPage(t, await post(where, fields), 400, says)
    }
    t.same(await memoriesOf(ops, '?category=dependency'), [json], 'nothing was stored')
    await expectStatus(303, post(`${path}/delete`))
    isPage(t, await post(`${path}/delete`), 404)
    isPage(t, await post(path, change), 404)
  })

  await t.test('alerts: shown, investigated, refused', async (t) => {
    const [row] = await ops.query(
      `with alert as (
         insert into ops.alerts (fingerprint, source, content, first_seen, last_seen, outcome, problem)
         values ('f', 'grafana', 'c', now(), now(), 'failed', 'no model') returning id
       )
       insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
       select id, 'c', $1, $1, now(), now() from alert returning alert_id as id`,
      [`Disk ${PROBE}`],
    )
    const path = `/alerts/${Number(row?.['id'])}/investigate`
    t.match((await get('/alerts')).text, ESCAPED)
    gate.shut()
    await trigger(ops)
    isPage(t, await post(path), 409)
    isJson(t, await post(path, {}, HTMX), 409, 'a session is running; try again when it has ended')
    gate.open()
    await ended(ops)
    const started = await expectStatus(303, post(path))
    const session = await ended(ops)
    t.equal(leadsTo(started), `/sessions/${session.id}`)
    t.equal(session.trigger, 'manual')
    t.match(session.prompt_text, /(ALERT-[0-9a-f]{32})[\s\S]*\n\1\nDisk <img[\s\S]*\n\1$/)
    isPage(t, await get(path.replace('/investigate', '')), 200, ESCAPED)
    isPage(t, await get('/alerts/none'), 404)
    const led = await expectStatus(204, post(path, {}, HTMX))
    t.match(led.headers['hx-redirect'], `/sessions/${(await ended(ops)).id}?done=started`)
    isPage(t, await post('/alerts/999/investigate'), 404)
  })

  await t.test('stored text is inert wherever it is shown', async (t) => {
    await api('POST', '/memories', { category: PROBE, observation: PROBE, service: PROBE })
    const { id } = await trigger(ops, PROBE)
    await ended(ops, id)
    await ops.query(
      `with line as (insert into ops.session_lines values ($1, 100, now(), $2, $2)),
            action as (insert into ops.actions (service, action_type, operation, at) values ($2, $2, $2, now())),
            summary as (update ops.sessions set summary = $2, model = $2 where id = $1)
       insert into ops.events (session_id, level, service, message, created_at) values ($1, 'info', $2, $2, now())`,
      [id, PROBE],
    )
    await api('PUT', '/config', { tier1_model: PROBE })
    const service = encodeURIComponent(PROBE)
    const paths = ['/', '/sessions', `/sessions/${id}`, '/memories', '/cooldowns', '/config']
    for (const path of [...paths, '/alerts', `/events?service=${service}`]) {
      const { text } = await get(path)
      t.match(text, ESCAPED, path)
      t.notMatch(text, '<img src=x', path)
    }
    const note = { category: PROBE, observation: PROBE, confidence: PROBE, service: PROBE }
    const typed = {
      '/memories': note,
      '/config': { interval: PROBE },
      '/sessions/trigger': { prompt: PROBE, tier: PROBE },
    }
    for (const [path, fields] of Object.entries(typed)) {
      t.notMatch((await post(path, fields)).text, '<img src=x', path)
    }
  })

  await t.test('what comes meanwhile repeats no row on the next page', async (t) => {
    const insert = ops.query
    const later = (n: number | string) => `'2101-01-01'::timestamptz + ${n} * interval '1 s'`
    const event = (n: number) =>
      insert(`insert into ops.events (level, service, message, created_at)
              values ('info', 'paged', 'row', ${later(n)})`)
    const alert = (n: number) =>
      insert(`with alert as (
                insert into ops.alerts (fingerprint, service, content, first_seen, last_seen, outcome)
                values ('paged ${n}', 'paged', 'c', now(), ${later(n)}, 'failed')
                returning id
              )
              insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
              select id, 'c', 'paged', 'x', now(), now() from alert`)
    const note = { service: 'paged', category: 'c' }
    const memory = (n: number) =>
      api('POST', '/memories', { ...note, observation: `row ${n}`, confidence: n / 20 })
    await alert(0)
    const [added] = await insert(`select id::int from ops.alerts where fingerprint = 'paged 0'`)
    const id = Number(added?.['id'])
    // Two of one moment: their numbers tell them apart.
    const text = (n: number) =>
      insert(`insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
              values (${id}, 'text ${n}', 'row ${n}', 'x', now(), ${later(`${n} / 2`)})`)
    const lists = {
      '/events?service=paged': [event, /<tr role="row" data-id="(\d+)"/g],
      '/alerts?service=paged': [alert, /href="\/alerts\/(\d+)"/g],
      '/memories?service=paged': [memory, /id="memory-(\d+)"/g],
      [`/alerts/${id}?`]: [text, /<h3><bdi>row (\d+)</g],
    } as const
    for (const [path, [add, row]] of Object.entries(lists)) {
      for (let n = 1; n <= 5; n++) await add(n)
      const idsOf = ({ text }: Response) => allIn(text, row).map(Number)
      const first = await get(`${path}&limit=2`)
      const [older = ''] = /[^"]*[?&;]after=[^"]*/.exec(first.text) ?? []
      await add(6)
      const second = await get(older.replaceAll('&amp;', '&'))
      const ids = [...idsOf(first), ...idsOf(second)]
      t.equal(new Set(ids).size, 4, `${path}: ${ids.join()}`)
      t.match(second.text, 'after=', 'and there is one more page')
    }
    isPage(t, await get(`/alerts/${id}?after=1`), 400)
    for (const table of ['alerts', 'events', 'memories']) {
      await insert(`delete from ops.${table} where service = 'paged'`)
    }
  })

  await t.test('lists: filters and older rows', async (t) => {
    await ops.query(
      `insert into ops.events (level, service, message, created_at)
       select case when n % 2 = 0 then 'critical' else 'warning' end, 'shop', 'event ' || n, now() + n * interval '1 s'
         from generate_series(1, 7) as n`,
    )
    const page = await get('/events?service=shop&level=critical&limit=2')
    t.same(messages(page), ['event 6', 'event 4'])
    t.match(page.text, '>3 events<')
    isFragment(t, await get('/events?service=shop', HTMX), 200)
    const [{ id = 0 } = {}] = await sessionsOf(ops)
    const lines = await get(`/sessions/${id}?before=3`)
    t.match(lines.text, 'data-seq="2"')
    t.notMatch(lines.text, 'data-seq="3"')
    t.match(lines.text, '>Newest lines<')
  })
})

function messages({ text }: Response) {
  return allIn(text, />\s*(event \d+)\s*</g)
}
