import { createHmac } from 'node:crypto'
import { t } from 'tap'
import { postgres } from '../../helpers/backends.ts'
import { runCli } from '../../helpers/cli.ts'
import {
  addProvider,
  eventIds,
  newest,
  FORM_TYPE,
  post,
  shown,
  startHooks,
  type Ack,
} from '../../helpers/hooks.ts'
import { request, type RequestOptions } from '../../helpers/http.ts'
import { expectStatus, refuseAll, type Refusal } from '../../helpers/refusals.ts'
import { replay, startReceiver } from '../../helpers/replays.ts'
import { secret } from '../../helpers/secrets.ts'
import { cardOf, secretKey } from '../../helpers/senders.ts'
import { until } from '../../helpers/until.ts'

const ALL = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const OPEN = 'trust_mode=open&acknowledge_open=true'
const BOTH = 'methods=GET&methods=POST'
const ALLOW_ALL = 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT'

const { base, env } = await startHooks(t, postgres, {
  GATEHOUSE_SECRET_KEY: secretKey(),
  HOOKS_REPLAY_TARGETS: '127.0.0.1',
})
const stored = () =>
  postgres.query(env, 'select name, methods, answer from hooks.providers order by 1')

/** Posts a form as a browser does: ticked boxes of one name are fields of one name. */
function sendForm(path: string, body: string) {
  return request(base + path, { method: 'POST', headers: FORM_TYPE, body, secretShown: true })
}

/** Makes an open provider, enabled. */
async function addOpen(name: string, more = '') {
  await expectStatus(200, sendForm('/providers', `name=${name}&${OPEN}&${more}&enabled=true`))
}

function call(method: string, path: string, options: RequestOptions = {}) {
  return request(`${base}/webhooks/generic/${path}`, { method, ...options })
}

await t.test('unless chosen, a receiver takes POST alone and answers 202', async (t) => {
  await addOpen('plain')
  const before = await eventIds(base)
  for (const method of ['GET', 'HEAD', 'PUT', 'OPTIONS']) {
    for (const path of ['plain', 'plain/token', 'nobody']) {
      const answer = await call(method, path)
      t.match(answer, { status: 405, headers: { allow: 'POST' } }, `${method} ${path}`)
    }
  }
  t.same(await eventIds(base), before)
  await expectStatus(202, post(base, 'generic/plain', '{}'))
  t.notOk('method' in (await newest(base)), 'the members of the contract')
})

await t.test('the chosen methods are stored, each with its query and body', async (t) => {
  await addOpen('any', ALL.map((method) => `methods=${method}`).join('&'))
  for (const method of ALL) {
    const sent = method === 'GET' ? '' : `of ${method}`
    const headers = { 'Content-Length': String(sent.length) }
    await expectStatus(202, call(method, 'any?order=7', { headers, body: sent }), method)
    const expected = method === 'POST' ? {} : { method, query: 'order=7' }
    t.match(await newest(base), { payload: sent, trust_mode: 'open', ...expected })
  }
  const before = await eventIds(base)
  const options = await call('OPTIONS', 'any')
  t.match(options, { status: 204, text: '', headers: { allow: ALLOW_ALL } })
  t.match(await call('HEAD', 'any?order=8'), { status: 202, text: '' })
  t.match(await call('PROPFIND', 'any'), { status: 405, headers: { allow: ALLOW_ALL } })
  t.same(await eventIds(base), before, 'nothing of these is stored')

  await addOpen('get', 'methods=GET')
  const allow = 'GET, HEAD, OPTIONS'
  t.match(await post(base, 'generic/get', '{}'), { status: 405, headers: { allow } })
})

await t.test("a GET's query is stored and shown without secrets", async (t) => {
  const hidden = secret('query')
  const query = `a=1&api_key=${hidden}&next=https%3A%2F%2Fx.example%2F%3Ftoken%3D${hidden}&b=%C3%BC`
  const { id } = (await call('GET', `any?${query}`)).json<Ack>()
  t.match(await newest(base), { query: /^a=1&api_key=«redacted»&next=.*«redacted»&b=%C3%BC$/ })
  const { text } = await request(`${base}/log/${id}?tab=request`)
  t.match(text, /<code>GET <bdi>\/webhooks\/generic\/any\?a=1&amp;api_key=«redacted»/)
  t.match((await shown(base, id)).headers, { a: '1', api_key: '«redacted»', b: 'ü' })
  await expectStatus(202, call('GET', `any?%00token=${hidden}`))
  t.match(await newest(base), { query: '\u{FFFD}token=«redacted»' }, 'a NUL is not stored')
})

await t.test('a token opens other methods as it opens POST', async (t) => {
  const token = await addProvider(base, 'guarded')
  await sendForm('/providers/generic%3Aguarded/answers', BOTH)
  await expectStatus(202, call('GET', `guarded?token=${token}&a=3`))
  t.match(await newest(base), { query: 'token=«redacted»&a=3', trust_mode: 'token' })
  const before = await eventIds(base)
  for (const method of ['GET', 'HEAD']) {
    await expectStatus(403, call(method, 'guarded?token=wrong'), method)
  }
  t.same(await eventIds(base), before)
})

await t.test('a signed provider takes GET where the address is signed', async (t) => {
  const key = secret('twilio')
  const signed = `trust_mode=signed&secret=${key}`
  const calls = `${signed}&name=calls&scheme=twilio&${BOTH}&enabled=true`
  await expectStatus(200, sendForm('/providers', calls))
  const signedGet = (query: string, text = query) => {
    const url = `${base}/webhooks/generic/calls?${text}`
    const signature = createHmac('sha1', key).update(url).digest('base64')
    return call('GET', `calls?${query}`, { headers: { 'X-Twilio-Signature': signature } })
  }
  const first = await signedGet('Sid=1')
  t.match(first.json(), { verified: true, trust_mode: 'signed' })
  t.same((await signedGet('Sid=1')).json(), first.json(), 'a repeat is known by its query')
  t.not((await signedGet('Sid=2')).json<Ack>().id, first.json<Ack>().id)
  await expectStatus(403, signedGet('Sid=3', 'Sid=1'))

  const github = `${signed}&name=code&scheme=github`
  const refused = /^methods can't have GET: this scheme signs the body and not the query/
  await refuseAll(t, { service: 'hooks', base, state: stored }, [
    form('/providers', `${github}&${BOTH}`, refused),
  ])
})

await t.test('the chosen answer: text, JSON or XML, in a sandbox', async (t) => {
  const text = 'text/plain; charset=utf-8'
  const json = 'answer_type=application/json&answer_body={"<script>":1}'
  const xml = 'answer_type=application/xml&answer_body=<Response/>'
  const long = 'x'.repeat(4_096)
  const cases = [
    ['answer_status=201&answer_body=a%0D%0Aü', 201, text, 'a\nü'],
    [json, 200, 'application/json', '{"<script>":1}'],
    [`${xml}&answer_status=418`, 418, 'application/xml', '<Response/>'],
    ['answer_status=204', 204, undefined, ''],
    [`answer_body=${long}`, 200, text, long],
  ] as const
  for (const [at, [fields, status, type, text]] of cases.entries()) {
    await addOpen(`answer-${at}`, `${fields}&${BOTH}`)
    for (const method of ['POST', 'HEAD']) {
      const answer = await call(method, `answer-${at}`)
      t.match(answer, { status, text: method === 'HEAD' ? '' : text }, `${method} ${at}`)
      t.match(answer.headers, {
        'content-type': type,
        'x-content-type-options': 'nosniff',
        'content-security-policy': 'sandbox',
      })
    }
  }
})

await t.test('an answer of failure is given to what was stored', async (t) => {
  await addOpen('failing', 'answer_status=503&answer_body=later')
  const twice = { 'Webhook-Id': 'msg_1' }
  t.match(await post(base, 'generic/failing', '{}', twice), { status: 503, text: 'later' })
  t.match(await post(base, 'generic/failing', '{}', twice), { status: 503, text: 'later' })
  t.match(await newest(base), { provider: 'generic:failing', external_id: 'msg_1', attempts: 2 })
  t.match(await cardOf(base, 'generic:failing'), {
    Answer: /^503, text\/plain, later\s+Events are stored, but a sender takes this answer/,
  })
})

await t.test('they are changed on the page and by the command', async (t) => {
  await addOpen('changing')
  const path = '/providers/generic%3Achanging/answers'
  const chosen = 'methods=GET&methods=PUT&answer_status=&answer_type=&answer_body=hi'
  await expectStatus(200, sendForm(path, chosen))
  t.match(await cardOf(base, 'generic:changing'), {
    Methods: 'GET, PUT',
    Answer: '200, text/plain, hi',
  })
  t.match(await call('PUT', 'changing'), { status: 200, text: 'hi' })
  const set = (...flags: readonly string[]) =>
    runCli(['provider', 'set', 'changing', ...flags], { env, input: '<a/>\n' })
  const xml = ['--answer-type', 'application/xml', '--answer-body', '-', '--answer-status=500']
  t.match(await set(...xml), { code: 0, stderr: /changing: answers 500, application\/xml/ })
  await until(async () => (await call('PUT', 'changing')).text === '<a/>', 'the new answer')
  t.match(await set('--usual-answer'), { code: 0, stderr: /answers 202 with the id/ })
  t.match(await set('--methods', 'post'), { code: 0, stderr: /changing: accepts POST\n/ })
  await until(async () => (await call('PUT', 'changing')).status === 405, 'POST alone')
  await expectStatus(200, sendForm(path, ''), 'no box is ticked')
  await expectStatus(202, post(base, 'generic/changing', ''), 'the usual answer')
})

await t.test('an event of another method is sent on by POST, with what it was', async (t) => {
  const receiver = await startReceiver(t)
  const target = `${receiver.url}/in`
  const hidden = secret('sent-on')
  const { id } = (await call('DELETE', `any?a=1&token=${hidden}&n=ü`)).json<Ack>()
  await expectStatus(200, replay(base, id, target))
  t.match(receiver.received[0], {
    method: 'POST',
    path: '/in',
    headers: {
      'x-gatehouse-method': 'DELETE',
      'x-gatehouse-query': 'a=1&token=%C2%ABredacted%C2%BB&n=%C3%BC',
    },
  })
  const headers = { 'X-Gatehouse-Method': 'DELETE', 'X-Gatehouse-Query': 'b=2' }
  const plain = (await call('POST', 'any?a=1', { headers, body: 'x' })).json<Ack>()
  await replay(base, plain.id, target)
  t.equal(receiver.received.length, 2)
  const last = receiver.received.at(-1)
  const names = Object.keys(last?.headers ?? {}).join(' ')
  t.notMatch(names, /x-gatehouse-(method|query)/, 'no provider claims it')
})

/** A form that is refused. */
function form(path: string, body: string, text: RegExp, status = 422): Refusal {
  return [{ call: `POST ${path}`, headers: FORM_TYPE, body }, status, text]
}

await t.test('what is refused', async (t) => {
  const path = '/providers/generic%3Aany/answers'
  const status = /^answer_status must be 200 to 299/
  const none = /There is no provider/
  await refuseAll(t, { service: 'hooks', base, state: stored }, [
    form(path, 'methods=GET&methods=OPTIONS', /^methods must be some of GET/),
    ...['100', '301', '600', '2e2'].map((value) => form(path, `answer_status=${value}`, status)),
    form('/providers', `name=bad&${OPEN}&answer_status=100`, status),
    form(path, 'answer_type=text/html&answer_body=x', /^answer_type must be text/),
    form(path, `answer_body=${'x'.repeat(4_095)}ü`, /^answer_body must be text of 4096 bytes/),
    form(path, 'answer_body=a%00b', /^answer_body must be text/),
    form(path, 'answer_type=application/json', /^answer_type needs answer_body/),
    form(path, 'answer_status=204&answer_body=x', /^answer_body must be empty/),
    form('/providers/code_host/answers', 'methods=GET', none, 404),
    form('/providers/generic%3Anone/answers', '', none, 404),
  ])
})
