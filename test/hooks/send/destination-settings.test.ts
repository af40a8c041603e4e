import { createHmac } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { t, type Test } from 'tap'
import { apiOf } from '../../helpers/api.ts'
import { postgres } from '../../helpers/backends.ts'
import { refuseCommands, runCli } from '../../helpers/cli.ts'
import {
  addDestination,
  destination,
  listed,
  retry,
  untilListed,
} from '../../helpers/destinations.ts'
import {
  addProvider,
  deliver,
  formCall,
  post,
  postForm,
  startHooks,
  store,
} from '../../helpers/hooks.ts'
import { allIn, request } from '../../helpers/http.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { refuseAll, type Refusal } from '../../helpers/refusals.ts'
import { attemptsOf, startReceiver, type Received } from '../../helpers/replays.ts'
import { keepSecret, secret } from '../../helpers/secrets.ts'
import { secretKey, signingSecret } from '../../helpers/senders.ts'
import { startServer } from '../../helpers/server.ts'
import { until } from '../../helpers/until.ts'

/** A form that a browser posts as a page, and as a part of one. */
const PAGE = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
const PART = { 'HX-Request': 'true', 'Sec-Fetch-Site': 'same-origin' }
const SAVED = { status: 200, headers: { 'gatehouse-done': 'Saved.' } }
const CLOSED = 'http://127.0.0.1:9/'

type Shown = Readonly<Record<string, unknown>> & { version: string; headers: object }
type Fields = Readonly<Record<string, string>>

const { base, env, server } = await startHooks(t, postgres, {
  HOOKS_REPLAY_TARGETS: '127.0.0.1',
  GATEHOUSE_SECRET_KEY: secretKey(),
})
const api = apiOf(base)
const query = postgres.query.bind(undefined, env)
await addProvider(base, 'lan', { open: true })
let status = 204
/** Says back what it was sent, as some receivers do. */
const receiver = await startReceiver(t, ({ headers }, response) => {
  const [, pair = ''] = (headers.authorization ?? '').split(' ')
  const echo = { headers, pair: Buffer.from(pair, 'base64').toString(), json: `\\/${pair}` }
  response.writeHead(status).end(JSON.stringify(echo))
})
const url = `${receiver.url}/in`

const state = async () => (await api('GET', '/destinations')).json
const pageOf = async (path: string) => (await request(`${base}/destinations${path}`)).text
const form = (path: string, fields: Fields, headers = {}) =>
  postForm(base, `/destinations${path}`, fields, headers)

const send = (body = '{"n":1}', type = 'none') =>
  store(base, 'lan', body, { 'X-Event-Type': type })

/** The newest request of the receiver. */
function newest() {
  const got = receiver.received.at(-1)
  if (got === undefined) throw new Error('the receiver got nothing')
  return got
}

const remove = (name: string) => api('DELETE', `/destinations/${name}`)

/** Adds a destination, at the receiver unless `members` say otherwise; it goes with the test. */
function add(t: Test, name: string, members: object) {
  t.teardown(() => remove(name))
  return addDestination(base, name, url, members)
}

/** Checks what was sent as receivers do: by the library of https://www.standardwebhooks.com. */
function verified(own: string, { headers, body }: Received) {
  return new Webhook(own).verify(body.toString(), headers as Record<string, string>)
}

await t.test('what filters would have matched', async (t) => {
  const matches = async (fields: Fields) => {
    const path = `${base}/destinations/-/matches?${new URLSearchParams(fields).toString()}`
    const { text } = await request(path, { headers: PART })
    return /role="status">\s*(.*?)\s*</.exec(text)?.[1]
  }
  t.equal(await matches({}), 'No events came so far.')
  await send('{"ref":"main"}', 'push')
  await send('{"ref":"main"}', 'invoice.paid')
  await send('{}', 'invoice.failed')
  for (const [fields, count] of [
    [{}, 3],
    [{ event_type: 'invoice.*', event_types: 'push\n' }, 3],
    [{ provider: 'code_host' }, 0],
    [{ json: 'ref=main', event_type: 'invoice.*' }, 1],
  ] as const) {
    const expected = `Matches ${count} of the last 3 events.`
    t.equal(await matches(fields), expected, JSON.stringify(fields))
  }
  t.equal(await matches({ json: 'ref' }), 'A filter is not complete yet.')
  const text = await pageOf('/-/new?event_type=push')
  t.match(text, /Matches 1 of the last 3 events\./, 'also without script')
  const typed = { name: 'typed', url: 'x', event_type: 'push' }
  const refused = await form('', typed, PAGE)
  t.match(refused, { status: 422, text: /Matches 1 of the last 3 events\./ })
  t.match(refused.text, /value="typed"/, 'what was typed stays')

  await query(`insert into hooks.events (received_at, trust, provider, event_type, headers, payload)
     select now(), 3, 'generic:lan', 'many', '[]', '{}' from generate_series(1, 1001)`)
  const most = 'Matches 1,000 of the last 1,000 events.'
  t.equal(await matches({ event_type: 'many' }), most, 'only the newest are counted')
})

await t.test('in the list those that fail come first, those that are disabled last', async (t) => {
  t.match(await pageOf(''), 'No destinations yet.')
  await addProvider(base, 'short', { open: true })
  for (const name of ['a', 'c', 'd']) await add(t, name, { provider: 'generic:short' })
  await destination(env, 'disable', 'a')
  status = 410
  await add(t, 'b', { provider: 'generic:lan' })
  await send()
  await untilListed(base, 'b', { dead: 1, failing: true })
  status = 204
  const text = await pageOf('')
  const names = allIn(text, /data-destination="([^"]+)"/g)
  t.same(names, ['b', 'c', 'd', 'a'])
  t.match(text, /href="\/destinations\/b\?state=dead"/, 'a row opens what failed')
  t.match(await pageOf('/b?state=dead'), /data-delivery="\d+"/)

  await postForm(base, '/providers/generic%3Ashort/remove', {})
  const page = await pageOf('/c')
  t.match(page, /no provider <bdi><code>generic:<wbr \/>short/)
  t.match(page, /<option value="generic:short" selected>generic:short \(no such provider\)/)
  const kept = await form('/c', { url, provider: 'generic:short' })
  t.equal(kept.status, 200, 'it stays: its events are still in the log')
})

await t.test('a change keeps what it does not name, and the newest one wins', async (t) => {
  const hidden = `${CLOSED}in?token=geheim`
  t.teardown(() => remove('erp'))
  const flags = ['--ordered', '--rate', '5/s', '--timeout', '30']
  t.match(await destination(env, 'add', 'erp', hidden, ...flags), { code: 0 })
  const types = ['--event-type', 'a', '--event-type', 'b']
  const set = await destination(env, 'set', 'erp', ...types)
  t.match(set, { code: 0, stderr: 'erp is changed\n' })
  const shown = { ordered: true, rate: 5, timeout_s: 30, url: `${CLOSED}in?token=«redacted»` }
  t.match(await listed(base, 'erp'), { event_types: ['a', 'b'], ...shown })
  const stored = `select url from hooks.destinations where name = 'erp'`
  t.same(await query(stored), [{ url: hidden }], 'the hidden token stays')
  const off = ['--unordered', '--rate=', '--event-type=']
  t.match(await destination(env, 'set', 'erp', ...off), { code: 0 })
  t.match(await listed(base, 'erp'), { event_types: [], ordered: false, rate: null })

  const text = await pageOf('/erp')
  t.notMatch(text, 'geheim')
  t.match(text, /value="http:\/\/127.0.0.1:9\/in\?token=«redacted»"/)
  const version = /name="version" value="([^"]+)"/.exec(text)?.[1] ?? ''
  const fields = { url: CLOSED, providers: 'generic:lan\n', rate: '7', version }
  t.match(await form('/erp', fields), SAVED)
  t.match(await listed(base, 'erp'), { providers: ['generic:lan'], rate: 7, timeout_s: 10 })
  const again = await form('/erp', fields, PAGE)
  t.match(again, { status: 412, text: /was changed meanwhile/ })

  const { json, headers } = await api<Shown>('GET', '/destinations/erp')
  t.equal(headers['etag'], `"${json.version}"`)
  const match = { 'If-Match': `"${json.version}"` }
  const put = await api<Shown>('PUT', '/destinations/erp', { url: CLOSED }, match)
  t.match(put, { status: 200, json: { name: 'erp', url: CLOSED, providers: [] } })
  t.not(put.json.version, json.version)
  t.equal(put.headers['etag'], `"${put.json.version}"`)
})

await t.test('its own secret signs events that came without a signature', async (t) => {
  const own = signingSecret()
  const made = JSON.stringify(await add(t, 'own', { sign_with: { secret: own } }))
  t.match(made, '"sign_with":{"scheme":"standard","secret":"configured"}')
  await send()
  await untilListed(base, 'own', { delivered: 1 })
  t.same(verified(own, newest()), { n: 1 })
  t.equal(newest().headers['webhook-id'], newest().headers['idempotency-key'])

  // Of a provider that signs: its secret is neither needed nor used.
  await deliver(base, 'code_host', '{"n":2}')
  await untilListed(base, 'own', { delivered: 2 })
  t.equal(newest().headers['x-hub-signature-256'], undefined)
  t.same(verified(own, newest()), { n: 2 })

  const text = secret('own-github')
  const sign_with = { scheme: 'github', secret: text }
  t.equal((await api('PUT', '/destinations/own', { url, sign_with })).status, 200)
  await send('{"n":3}')
  await untilListed(base, 'own', { delivered: 3 })
  const expected = createHmac('sha256', text).update('{"n":3}').digest('hex')
  t.equal(newest().headers['x-hub-signature-256'], `sha256=${expected}`)
})

await t.test('headers and authorization are sent, never shown, and in no answer', async (t) => {
  const [key, token, password] = [secret('api-key'), secret('bearer'), secret('basic/"pw')]
  status = 500
  const bearer = `Bearer ${token}`
  const made = await add(t, 'auth', { headers: { 'X-Api-Key': key }, authorization: bearer })
  t.match(made, { headers: { 'x-api-key': 'configured' }, authorization: 'configured' })
  const id = await send()
  await untilListed(base, 'auth', { waiting: 1, last_status: 500 })
  t.match(newest().headers, { 'x-api-key': key, authorization: bearer })
  const pair = keepSecret('pair', Buffer.from(`ann:${password}`).toString('base64'))
  await api('PUT', '/destinations/auth', { url, authorization: `Basic ann:${password}` })
  await retry(base, 'auth')
  await until(async () => (await attemptsOf(base, id)).length === 2, 'the second try')
  t.match(newest().headers, { 'x-api-key': key, authorization: `Basic ${pair}` })
  const answers = (await attemptsOf(base, id)).map(({ body }) => body)
  t.match(answers[0], '«redacted»')
  const { stdout } = await destination(env, 'list', '--json')
  t.match({ destinations: JSON.parse(stdout) }, await state(), 'as the API gives them')
  const pages = [await pageOf('/auth'), stdout]
  for (const text of [...answers, ...pages, JSON.stringify(await state())]) {
    for (const hidden of [key, token, pair, password]) t.notOk(text.includes(hidden))
  }
  status = 204
})

await t.test('a credential that is left out of a change stays; null removes it', async (t) => {
  const [own, key] = [signingSecret(), secret('kept')]
  const authorization = `Bearer ${key}`
  await add(t, 'kept', {
    sign_with: { secret: own },
    headers: { 'X-A': key, 'X-B': key },
    authorization,
  })
  await api('PUT', '/destinations/kept', { url, headers: { 'X-B': null, 'X-C': key } })
  const { headers } = (await api<Shown>('GET', '/destinations/kept')).json
  t.same(headers, { 'x-a': 'configured', 'x-c': 'configured' })
  // What was read may be sent back.
  const sign_with = { scheme: 'standard', secret: 'configured' }
  const again = { url, headers, authorization: 'configured', sign_with }
  t.equal((await api('PUT', '/destinations/kept', again)).status, 200)
  await send()
  await untilListed(base, 'kept', { delivered: 1 })
  t.match(newest().headers, { 'x-a': key, 'x-c': key, authorization })
  t.equal(newest().headers['x-b'], undefined)
  t.same(verified(own, newest()), { n: 1 })
  const none = { headers: null, authorization: null, sign_with: null }
  t.match((await api('PUT', '/destinations/kept', { url, ...none })).json, {
    sign_with: null,
    authorization: null,
    headers: {},
  })
  await send()
  await untilListed(base, 'kept', { delivered: 2 })
  t.equal(newest().headers.authorization, undefined)
  t.equal(newest().headers['webhook-signature'], undefined)
  await api('PUT', '/destinations/kept', { url, headers: { 'X-A': key } })
  const cleared = await api<Shown>('PUT', '/destinations/kept', { url, headers: {} })
  t.same(cleared.json.headers, {}, 'an empty object is none')
})

await t.test('commands take credentials from files, and forms keep what is empty', async (t) => {
  const [own, token, key] = [signingSecret(), secret('token'), secret('header')]
  const bearer = `Bearer ${token}`
  const file = join(await temporaryFolder(t), 'secret')
  await writeFile(file, `${own}\n`)
  t.teardown(() => remove('erp'))
  const words = ['add', 'erp', CLOSED, '--sign-secret', file, '--authorization', '-']
  t.match(await runCli(['destination', ...words], { env, input: `${bearer}\n` }), { code: 0 })
  await writeFile(file, `X-Key: ${key}\nX-Other: ${key}\n`)
  t.match(await destination(env, 'set', 'erp', '--headers', file), { code: 0 })
  const all = { sign_with: { scheme: 'standard' }, authorization: 'configured' }
  const headers = { 'x-key': 'configured', 'x-other': 'configured' }
  t.match(await listed(base, 'erp'), { headers, ...all })
  const without = ['--without', 'authorization,headers']
  t.match(await destination(env, 'set', 'erp', ...without), { code: 0 })
  const less = { sign_with: { scheme: 'standard' }, headers: {}, authorization: null }
  t.match(await listed(base, 'erp'), less)

  const fields = { url: CLOSED, sign_with: 'standard', headers: `X-Key: ${key}` }
  const empty = { ...fields, sign_secret: '', authorization: bearer }
  t.match(await form('/erp', empty), SAVED)
  t.match(await listed(base, 'erp'), all)
  const removal = { sign_with: '', headers: 'X-Key:', remove_authorization: 'true' }
  await form('/erp', { url: CLOSED, ...removal })
  const nothing = { sign_with: null, headers: {}, authorization: null }
  t.match(await listed(base, 'erp'), nothing)
  const refused = await form('/erp', { ...fields, rate: 'x', sign_secret: own }, PAGE)
  t.equal(refused.status, 422)
  const shown = refused.text.includes(own) || refused.text.includes(key)
  t.notOk(shown, 'secrets are not shown again')
})

await t.test('a template makes messages of events', async (t) => {
  let made = 0
  /** What a destination with this template posts for an event that is sent now. */
  async function posted(body_template: string, make: () => Promise<unknown>, more: object = {}) {
    const name = `d${made++}`
    const members = { body_template, ...more }
    t.match(await addDestination(base, name, url, members), { body_template })
    await make()
    await untilListed(base, name, { delivered: 1 })
    await remove(name)
    t.equal(newest().headers['content-type'], 'application/json')
    return newest()
  }
  // Each with a body of its own: the same one would be the same event.
  const push = () => {
    const body = JSON.stringify({
      ref: 'refs/heads/main',
      repository: { full_name: 'acme/widgets' },
      pusher: { name: 'ann' },
      head_commit: { message: 'Mend the <!channel> "door" & more\n\nLonger text.' },
      n: made,
    })
    return deliver(base, 'code_host', body, { 'X-GitHub-Event': 'push' })
  }
  const jsonOf = ({ body }: Received) => JSON.parse(body.toString())

  await t.test('placeholders are values of the event, written as JSON', async (t) => {
    const odd = 'a"b\\c\n</script>\u2028ü'
    const values = { odd, number: 1.5, yes: true, none: null, list: [{ a: 'x' }], object: {} }
    const body = { ...values, long: 'ä'.repeat(700), '-dash_1': 'd' }
    const template = `{
      "text": "{{event_type}} {{ provider }}: {{json.odd}}", "{{json.-dash_1}}": 1,
      "number": {{json.number}}, "yes": {{json.yes}}, "none": {{json.none}}, "odd": {{json.odd}},
      "item": "{{json.list.0.a}}", "object": {{json.object}}, "missing": "<{{json.a.b}}>",
      "proto": "<{{json.__proto__.x}}{{json.constructor}}{{json.list.length}}>",
      "long": "{{json.long}}", "quote": "\\"{{json.odd}}\\"", "at": "{{received_at}}", "id": {{id}}
    }`
    const filled = jsonOf(await posted(template, () => send(JSON.stringify(body), 'odd.one')))
    t.match(filled, {
      text: `odd.one generic:lan: ${odd}`,
      d: 1,
      number: 1.5,
      yes: true,
      none: null,
      odd,
      item: 'x',
      object: null,
      missing: '<>',
      proto: '<>',
      long: `${'ä'.repeat(499)}…`,
      quote: `"${odd}"`,
      at: /^\d{4}-\d\d-\d\dT/,
      id: Number,
    })
    // Numbers have the digits that they came with, and a key may have any character.
    const exact = '{"price":1.10,"id":9007199254740993,"e":1E2,"a.b":{"c d":"x"},"long":LONG}'
    const digits = exact.replace('LONG', '1'.repeat(501))
    const named = String.raw`{"p":{{json.price}},"i":{{json.id}},"t":"{{json.e}}|{{json.price}}",
      "k":"{{json.a\.b.c\ d}}","l":{{json.long}}}`
    const numbers = String((await posted(named, () => send(digits))).body)
    t.equal(
      numbers.replaceAll(/\s/g, ''),
      '{"p":1.10,"i":9007199254740993,"t":"1E2|1.10","k":"x","l":null}',
    )
    // What is no JSON has no members, and what has no type is an event.
    const untyped = '{"text": "{{title}}: {{summary}} <{{event_type}}{{json.a}}>"}'
    const bare = () => post(base, 'generic/lan', 'plain "text"')
    const text = 'event from generic:lan: plain "text" <>'
    t.same(jsonOf(await posted(untyped, bare)), { text })
  })

  await t.test('a push becomes a message of each service', async (t) => {
    const title = 'push from code_host'
    const summary = 'acme/widgets · main · ann · Mend the <!channel> "door" & more'
    const escaped = summary.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')
    const own = signingSecret()
    const slack = await posted('slack', push, { sign_with: { secret: own } })
    t.same(jsonOf(slack), { text: `${title}: ${escaped}` })
    t.equal(slack.headers['x-github-event'], undefined, 'no header of the event is sent')
    t.equal(slack.headers['x-hub-signature-256'], undefined)
    t.ok(verified(own, slack), 'the destination itself signs it')
    const content = `${title}: ${summary}`
    const message = { content, allowed_mentions: { parse: [] } }
    t.same(jsonOf(await posted('discord', push)), message)
    const run = (text: string) => ({ type: 'RichTextBlock', inlines: [{ type: 'TextRun', text }] })
    const card = { type: 'AdaptiveCard', body: [run(title), run(summary)] }
    const contentType = 'application/vnd.microsoft.card.adaptive'
    t.match(jsonOf(await posted('teams', push)), {
      type: 'message',
      attachments: [{ contentType, content: card }],
    })
    const evil = '{"title": "[bank.example](https://evil.example)"}'
    const link = jsonOf(await posted('discord', () => send(evil, '[a](b)'.repeat(100))))
    const { content: shown } = link as { content: string }
    t.notMatch(shown, '](', 'no address hides behind another')
    t.ok(shown.length <= 2_000, 'nor is it longer than Discord takes')
    // ntfy reads JSON at its root alone, with the topic in it.
    const topic = { url: `${receiver.url}/alerts?auth=geheim` }
    const notice = await posted('ntfy', push, topic)
    t.same(jsonOf(notice), { topic: 'alerts', title, message: summary })
    t.equal(notice.path, '/?auth=geheim')
  })

  await t.test('the tokens in the addresses of chat services are not shown', async (t) => {
    const token = secret('chat').replaceAll('-', '')
    for (const [address, name] of [
      ['https://hooks.slack.com/services/T0AB/B0CD/', 'slack'],
      ['https://discord.com/api/webhooks/123456789/', 'discord'],
    ] as const) {
      const stored = () => query('select url from hooks.destinations where name = $1', [name])
      const members = { body_template: name, event_type: 'never', url: address + token }
      const hidden = `${address}«redacted»`
      t.match(await add(t, name, members), { url: hidden })
      t.same(await stored(), [{ url: address + token }])
      const changed = { url: hidden, body_template: name, timeout_s: 5 }
      t.equal((await api('PUT', `/destinations/${name}`, changed)).status, 200)
      t.same(await stored(), [{ url: address + token }], 'it stays')
    }
  })

  await t.test('by command and form', async (t) => {
    t.teardown(() => remove('chat'))
    await destination(env, 'add', 'chat', CLOSED, '--body-template', 'slack')
    t.match(await listed(base, 'chat'), { body_template: 'slack' })
    t.match(await form('/chat', { url: CLOSED, body_template: '{"a": 1}' }), SAVED)
    t.match(await listed(base, 'chat'), { body_template: '{"a": 1}' })
  })
})

await t.test('a test is sent as a delivery is, and counts as none', async (t) => {
  status = 404
  const own = signingSecret()
  const key = 'value-of-the-key'
  const address = `${url}?token=geheim`
  await add(t, 'tried', { url: address, sign_with: { secret: own }, headers: { 'X-Key': key } })
  const { json } = await api('POST', '/destinations/tried/test')
  const answer = /"x-key":"«redacted»"/
  t.match(json, { outcome: 'failed', status: 404, detail: null, answer })
  const got = newest()
  const headers = { 'x-gatehouse-test': 'true', 'x-key': key, 'idempotency-key': /^test-/ }
  t.match(got, { path: '/in?token=geheim', headers })
  t.match(verified(own, got), { test: true })
  const counts = { delivered: 0, waiting: 0, dead: 0, last_status: null, failing: false }
  t.match(await listed(base, 'tried'), counts)

  // A form sends one before it is saved, with the stored secrets.
  const fields = { url: `${url}?token=«redacted»`, sign_with: 'standard' }
  const part = await form('/tried/test', fields, PART)
  t.match(part.text, /^<div\s+id="test-result"[\s\S]*test failed[\s\S]*Answered 404 in \d+ ms/)
  t.match(newest(), { path: '/in?token=geheim', headers: { 'x-key': key } })
  const draft = { url: `${receiver.url}/draft`, event_type: 'push', headers: 'X-Key: other-key' }
  const page = await form('/-/test', draft, PAGE)
  t.match(page, { status: 200, text: /value="push"[\s\S]*Answered 404/ })
  t.notMatch(page.text, 'other-key', 'secrets are not shown again')
  t.match(newest(), { path: '/draft', headers: { 'x-key': 'other-key' } })
  t.equal((await destination(env, 'list')).stdout.match(/\n/g)?.length, 2, 'nothing is saved')

  const refused = await form('/-/test', { url: 'x' }, PART)
  t.match(refused, { status: 422, text: /^<div\s+id="test-result"[\s\S]*must be an http/ })
  const sent = receiver.received.length
  await query(`update hooks.destinations set url = 'http://10.0.0.1/'`)
  t.match((await api('POST', '/destinations/tried/test')).json, {
    outcome: 'refused',
    status: null,
    detail: /HOOKS_REPLAY_TARGETS/,
  })
  t.equal(receiver.received.length, sent)
  status = 204
})

await t.test('what is refused', async (t) => {
  await add(t, 'erp', { url: CLOSED, event_type: 'never' })
  const { version } = (await api<Shown>('GET', '/destinations/erp')).json
  const [own, key] = [signingSecret(), secret('refused')]
  const put = (body: object, headers = {}) => ({
    call: 'PUT /api/v1/destinations/erp',
    body: { url: CLOSED, ...body },
    headers,
  })
  const make = 'POST /api/v1/destinations'
  const made = (body: object) => ({ call: make, body: { name: 'other', url: CLOSED, ...body } })
  const retried = (body: object, name = 'erp') => ({ call: `${make}/${name}/retry`, body })
  const header = (name: string, value: unknown = 'v') => put({ headers: { [name]: value } })
  const template = (body_template: unknown) => put({ body_template })
  const sent = (path: string, fields: Fields) => formCall(`/destinations${path}`, fields)
  const list = 'GET /api/v1/destinations/erp/deliveries'
  const deep = `{"name":"other","url":${'['.repeat(7_500)}${']'.repeat(7_500)}}`
  const ids = Array.from({ length: 1_001 }, (_, n) => n + 1)
  const many = Array.from({ length: 21 }, (_, n) => `type-${n}`)
  type Row = readonly [call: Refusal[0], text?: RegExp]
  const wrong = (status: number, ...rows: readonly Row[]) =>
    rows.map(([call, text = /\S/]): Refusal => [call, status, undefined, text])
  await refuseAll(t, { service: 'hooks', base, state }, [
    ...wrong(
      400,
      [made({ name: 'A b' }), /^name must be 1 to 64/],
      [made({ url: 'ftp://example.com' }), /^url must be/],
      [made({ url: [CLOSED] }), /^url must be a JSON string; it must be an/],
      [{ call: make, body: deep }, /^url must be a JSON string/],
      [made({ rate: 'fast' }), /^rate must be/],
      [made({ ordered: 'true' }), /^ordered /],
      [made({ json: 'no value' }), /^json must be/],
      [{ call: 'PUT /api/v1/destinations/erp', body: {} }, /^url must be/],
      [put({ since: 'soon' }), /^since must be an event id/],
      [put({ timeout_s: 31 }), /^timeout_s must be a whole number/],
      [put({ event_types: many }), /at most 20/],
      [put({ event_types: ['x'.repeat(501)] }), /500 characters/],
      [put({ sign_with: 'standard' }), /^sign_with must be \{"scheme"/],
      [put({ sign_with: { scheme: 'gitlab', secret: key } })],
      [put({ authorization: 5 }), /^authorization must be a text/],
      [header('X-Key', 5), /^headers must be an object/],
      [template({ text: 'x' }), /^body_template must be a text/],
      [{ call: 'PUT /api/v1/destinations/erp/enabled', body: { enabled: 'no' } }],
      [retried({ since: 'soon' })],
      [retried({ events: 'all' }), /^events must be/],
      [retried({ events: [0] }), /^events must be a list of event ids/],
      [retried({ events: ids }), /1000 at most/],
      [`${list}?state=done`, /waiting or dead/],
      [`${list}?limit=201`, /from 1 to 200/],
      [`${list}?cursor=x`, /^cursor is not valid/],
    ),
    ...wrong(
      404,
      ['GET /api/v1/destinations/none'],
      ['GET /api/v1/destinations/none/deliveries'],
      ['DELETE /api/v1/destinations/none'],
      [{ call: 'PUT /api/v1/destinations/none', body: { url: CLOSED } }],
      [{ call: 'PUT /api/v1/destinations/none/enabled', body: { enabled: true } }],
      [{ call: 'POST /api/v1/destinations/none/test' }],
      [retried({}, 'none')],
      [sent('/none/enabled', { enabled: 'true' })],
      [sent('/none/deliveries', { events: '1' })],
    ),
    ...wrong(409, [made({ name: 'erp' }), /already/], [sent('', { name: 'erp', url: CLOSED })]),
    ...wrong(
      412,
      [put({}, { 'If-Match': '"other"' }), /changed meanwhile/],
      [put({}, { 'If-Match': `W/"${version}"` })],
      [put({ version: 'other' })],
    ),
    ...wrong(
      422,
      [made({ provider: 'none' }), /^There is no provider "none"; see the list of providers\.$/],
      [put({ url: 'http://10.0.0.1/' }), /HOOKS_REPLAY_TARGETS/],
      [put({ url: `${CLOSED}other?token=«redacted»` }), /^url has «red/],
      [put({ name: 'new' }), /^name is read-only/],
      [put({ providers: ['lan'] }), /^There is no provider "lan"; did you mean generic:lan\?$/],
      [put({ since: '999999' }), /^since must not be after event \d/],
      [put({ sign_with: { scheme: 'standard' } }), /secret of sign_with is missing/],
      [put({ sign_with: { secret: 'short' } }), /sign_with must be "whsec_"/],
      [put({ sign_with: { scheme: 'github', secret: 'short' } }), /8 to 256/],
      [put({ authorization: 'x' }), /^authorization must be "Bearer TOKEN"/],
      [put({ authorization: 'Bearer a\r\nX-Evil: 1' })],
      [put({ authorization: 'Basic nopair' })],
      [put({ authorization: `Bearer ${'x'.repeat(4_100)}` })],
      [header('X-Key', 'configured'), /no secret that "configured" stands for/],
      [header('X Key'), /^headers must have names such as X-Tenant/],
      [put(JSON.parse('{"headers": {"__proto__": "v"}}') as object)],
      [header('X-Key', 'a\r\nX-Evil: 1'), /printable ASCII/],
      [header('X-Key', 'ü')],
      [header('Authorization'), /it has a field of its own/],
      [put({ headers: Object.fromEntries(many.map((name) => [name, 'v'])) }), /20 at most/],
      [
        put({ headers: { 'Webhook-Id': 'v' }, sign_with: { secret: own } }),
        /^headers must not have webhook-id/,
      ],
      [template('{"a": "{{unknown}}"}'), /^body_template has \{\{unknown\}\}, which/],
      [template('{"a": "{{json}}"}')],
      [template('{"a": "{{id}"}'), /^body_template has \{\{ without \}\}/],
      [template('{"a": {{id}}'), /^body_template must be JSON, or one of slack/],
      [template('{{json.a}}{{json.b}}"')],
      [template(`"${'x'.repeat(10_000)}"`), /10000 characters at most/],
      [template(`"${'{{id}}'.repeat(101)}"`), /100 placeholders at most/],
      [template('ntfy'), /^url must end with the topic/],
      [sent('/erp', { url: CLOSED, sign_with: 'gitlab' }), /a scheme by which we can sign/],
      [sent('/erp', { url: CLOSED, headers: 'no colon' }), /^headers must be/],
      [sent('/erp/enabled', { enabled: 'on' }), /enabled must be true or false/],
      [sent('/erp/deliveries', { events: 'x' }), /^events must be/],
      [sent('/-/test', { url: 'http://10.0.0.1/' }), /HOOKS_REPLAY_TARGETS/],
    ),
    ...['Host', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Expect', 'Content-Type']
      .concat('Idempotency-Key', 'CDN-Loop', 'Proxy-Authorization', 'X-Gatehouse-Replay')
      .flatMap((name) => wrong(422, [header(name), /is set by Gatehouse itself/])),
  ])

  const notPublic = /The host of the URL is not on the public internet; list it in HOOKS_REPLAY_T/
  const none = /There is no destination "none"/
  await refuseCommands(t, { env, state }, [
    [['destination', 'add', 'erp', CLOSED], 1, /There is a destination "erp" already/],
    [['destination', 'add', 'x', 'https://169.254.169.254/latest'], 1, notPublic],
    [['destination', 'add', 'x', 'https://user:pw@example.com/'], 2, /URL must be an http:/],
    [['destination', 'add', 'x'], 2, /Missing URL/],
    [['destination', 'set', 'none', '--rate', '5'], 1, none],
    [['destination', 'set', 'erp'], 2, /Missing a setting/],
    [['destination', 'set', 'erp', '--timeout', '31'], 2, /--timeout must be a whole number/],
    [['destination', 'set', 'erp', '--ordered', '--unordered'], 2, /exclude each other/],
    [['destination', 'set', 'erp', '--sign-secret', 'whsec_x'], 2, /a secret is no argument/],
    [['destination', 'set', 'erp', '--authorization', 'Bearer x'], 2, /a secret is no argument/],
    [['destination', 'set', 'erp', '--without', 'url'], 2, /--without must be any of sign-with, /],
    [['destination', 'retry', 'erp', '--event', '1', '--dead'], 2, /takes no other flag/],
  ])
})

// Last: it ends the server.
await t.test('without the key nothing is sent, and the last answer says why', async (t) => {
  await addDestination(base, 'sealed', url, { sign_with: { secret: signingSecret() } })
  await server.stop()
  const { GATEHOUSE_SECRET_KEY: _, ...others } = env
  const { hooks } = await startServer(t, { services: ['hooks'], env: others })
  const sent = receiver.received.length
  await post(hooks, 'generic/lan', '{}')
  const why = "the credentials of the destination can't be read: GATEHOUSE_SECRET_KEY is not set"
  const waiting = { waiting: 1, delivered: 0, last_status: null, last_detail: why }
  await untilListed(hooks, 'sealed', waiting)
  t.equal(receiver.received.length, sent)
  const body = { url, authorization: 'Bearer x' }
  const [call, state] = ['PUT /api/v1/destinations/sealed', () => listed(hooks, 'sealed')]
  const text = /^Secrets of destinations are stored encrypted: set GATEHOUSE_S/
  await refuseAll(t, { service: 'hooks', base: hooks, state }, [
    [{ call, body }, 422, undefined, text],
  ])
})
