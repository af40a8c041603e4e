import { verify } from '@octokit/webhooks-methods'
import Stripe from 'stripe'
import { Webhook } from 'standardwebhooks'
import { t } from 'tap'
import { postgres } from '../../helpers/backends.ts'
import { runCli } from '../../helpers/cli.ts'
import { allIn, request } from '../../helpers/http.ts'
import { refuseAll, type Refusal } from '../../helpers/refusals.ts'
import {
  attemptsIn,
  attemptsOf,
  replay,
  startReceiver,
  type Answer,
  type Received,
} from '../../helpers/replays.ts'
import { secret } from '../../helpers/secrets.ts'
import {
  addSigned,
  change,
  secretKey,
  sendStandard,
  signingSecret,
} from '../../helpers/senders.ts'
import { startServer } from '../../helpers/server.ts'
import {
  accepted,
  FORM_TYPE,
  formCall,
  SECRETS,
  SIGNED,
  addProvider,
  deliver,
  hmac,
  now,
  plain,
  post,
  postForm,
  startHooks,
  store,
  type Ack,
  type Bytes,
  type Signed,
} from '../../helpers/hooks.ts'
import { until } from '../../helpers/until.ts'

// One event is sent again, by its page; then many, by the page of a filter.

/** The present secret of the receiver of Standard Webhooks. */
let present = ''

/** Receivers as their users write them: with the sender's own library. */
const VERIFIERS: Readonly<Record<string, (got: Received) => Promise<boolean> | boolean>> = {
  code_host: ({ body, headers }) =>
    verify(SECRETS.code_host, body.toString(), String(headers['x-hub-signature-256'])),
  payments({ body, headers }) {
    // Throws when the signature is wrong or older than the tolerance, in seconds.
    const signature = String(headers['stripe-signature'])
    Stripe.webhooks.constructEvent(body.toString(), signature, SECRETS.payments, 60)
    return true
  },
  chat({ body, headers }) {
    const at = String(headers['x-slack-request-timestamp'])
    const expected = `v0=${hmac(SECRETS.chat, `v0:${at}:`, body)}`
    return Math.abs(now() - Number(at)) <= 60 && headers['x-slack-signature'] === expected
  },
  standard({ body, headers }) {
    const all = Object.entries(headers).map(([name, value]) => [name, String(value)])
    new Webhook(present).verify(body, Object.fromEntries(all))
    return true
  },
}

const inside = await startReceiver(t)
/** Answers that the receiver gives under the path of this name. */
const ANSWERS: Readonly<Record<string, Answer>> = {
  moved: (_, response) => void response.writeHead(307, { location: inside.url }).end(),
  broken: (_, response) => void response.writeHead(500).end('no'),
  gone: (_, response) => void response.destroy(),
  text: (_, response) => void response.end('{"ok": true,\n "message": "stored <b>"}'),
  bytes: (_, response) => void response.end(Buffer.from('a\xff\0\x1bb\r\nc', 'latin1')),
  long: (_, response) => void response.end('é'.repeat(5_000)),
  pair: (_, response) => void response.end(`${'x'.repeat(4_095)}😀`),
  endless: (_, response) => void response.write(`begun ${'x'.repeat(20_000)}`),
  answer({ path }, response) {
    response.end(decodeURIComponent(path.slice('/answer/'.length)))
  },
  told({ path }, response) {
    const echo = `you sent ${path} {"token":"geheim-geheim"} https:\\/\\/x.test\\/?token=other`
    response.writeHead(400).end(echo)
  },
  echo({ headers }, response) {
    const encoded = encodeURIComponent(String(headers['webhook-signature']))
    const escaped = JSON.stringify(headers).replaceAll('/', '\\/')
    response.writeHead(200).end(`${JSON.stringify(headers)}\n${escaped}\n${encoded}`)
  },
}

const receiver = await startReceiver(t, async (got, response) => {
  const [, name = ''] = /^\/(\w+)/.exec(got.path) ?? []
  const [answer, verifier] = [ANSWERS[name], VERIFIERS[name]]
  if (answer !== undefined) return answer(got, response)
  const good = await Promise.resolve()
    .then(() => verifier?.(got) ?? true)
    .catch(() => false)
  response.writeHead(good ? 204 : 401).end()
})
const { url, port } = receiver
const { base, env } = await startHooks(t, postgres, {
  GATEHOUSE_SECRET_KEY: secretKey(),
  HOOKS_REPLAY_TARGETS: `example.test, 127.0.0.1:${port}`,
})
await addProvider(base, 'open', { open: true })

const OUTSIDE =
  'the target is not on the public internet; an operator can allow it in HOOKS_REPLAY_TARGETS'
const REFUSED = { outcome: 'refused', answer: 'none', detail: OUTSIDE }
const OWN = { 'Sec-Fetch-Site': 'same-origin', Accept: 'text/html' }
const FOREIGN = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }

/** Sends an event of an open provider. */
const send = (type = 'note', body: Bytes = '{}') =>
  store(base, 'open', body, { 'X-Event-Type': type })

/** The newest attempt after one more. */
async function sent(id: number, target?: string, at = base) {
  return attemptsIn((await replay(at, id, target)).text)[0]
}

async function pageOf(path: string) {
  const { status, text } = await request(base + path, { headers: OWN })
  if (status !== 200) throw new Error(`${path} answered ${status}`)
  return text
}

const paid = await send('order.paid', '{"n":"<1>"}')
const last = await send('order.open')

await t.test('a receiver of a signed event accepts it again', async (t) => {
  const bodies: Readonly<Record<Signed, string>> = {
    code_host: '{"zen": "Ünïcode, \\u001b and  spaces"}\n',
    payments: JSON.stringify({ id: 'evt_1', object: 'event', type: 'charge.paid' }, null, 2),
    chat: 'command=%2Fdeploy&text=now&trigger_id=1.2.3',
  }
  for (const provider of SIGNED) {
    const kept = {
      ...(provider === 'chat' ? FORM_TYPE : { 'Content-Type': 'application/json' }),
      'X-GitHub-Event': 'ping',
      'X-GitHub-Delivery': `delivery-${provider}`,
      'User-Agent': 'Sender-Hookshot/1',
    }
    // Signed a good while ago, but within the window: a replay must sign with the present time.
    const options = { at: now() - 250, spelling: 'real' } as const
    const id = await accepted(deliver(base, provider, bodies[provider], kept, options))
    const target = `${url}/${provider}`
    const attempts = attemptsIn((await replay(base, id, target)).text)
    const answer = /^204 in \d+ ms$/
    t.match(attempts, [{ outcome: 'delivered', kind: 'replay', answer, target }], provider)
    t.same(await attemptsOf(base, id), attempts, 'kept on its page')
    const got = receiver.received.at(-1)
    t.ok(got?.body.equals(Buffer.from(bodies[provider])), 'the same bytes')
    t.match(got?.headers, {
      'content-type': kept['Content-Type'],
      'x-github-event': 'ping',
      'x-github-delivery': `delivery-${provider}`,
      'user-agent': 'Sender-Hookshot/1',
      'x-gatehouse-replay': String(id),
    })
  }
})

await t.test('the present secret signs what came before', async (t) => {
  const signing = await addSigned(base, 'shop')
  const options = { id: 'msg_kept', at: now() - 200 }
  const id = await accepted(sendStandard(base, 'shop', signing, '{"n":1}', options))
  present = signing
  t.match(await sent(id, `${url}/standard`), { answer: /^204/ })
  present = signingSecret()
  await change(base, 'generic:shop', 'rotate', { secret: present })
  t.match(await sent(id, `${url}/standard`), { answer: /^204/ }, 'with the new one')
  for (const { headers, body } of receiver.received.slice(-2)) {
    t.equal(headers['webhook-id'], 'msg_kept')
    t.ok(Math.abs(now() - Number(headers['webhook-timestamp'])) < 60, 'a fresh time')
    t.equal(body.toString(), '{"n":1}')
  }
  const { length } = receiver.received
  await change(base, 'generic:shop', 'remove')
  const gone = await replay(base, id, `${url}/standard`)
  t.match(gone.text, /cannot be signed again/, 'without its sender there is no secret')
  t.equal(receiver.received.length, length, 'nothing is sent unsigned')

  const old = await accepted(deliver(base, 'code_host', '{"a":1}'))
  const fresh = secret('code-host-fresh')
  const rotated = {
    ...env,
    HOOKS_CODE_HOST_SECRET: fresh,
    HOOKS_CODE_HOST_SECRET_PREVIOUS: SECRETS.code_host,
  }
  const second = await startServer(t, { services: ['hooks'], env: rotated })
  t.match(await sent(old, url, second.hooks), { outcome: 'delivered' })
  const { headers } = receiver.received.at(-1) ?? {}
  const signature = String(headers?.['x-codehost-signature-256'])
  t.equal(signature, headers?.['x-hub-signature-256'], 'in both spellings')
  t.ok(await verify(fresh, '{"a":1}', signature), 'a configured one')
})

await t.test('an answer that echoes our signature is kept without it', async (t) => {
  const check = async (id: number, name: string) => {
    const { body = '' } = (await sent(id, `${url}/echo`)) ?? {}
    const signature = String(receiver.received.at(-1)?.headers[name])
    const [digest = ''] = /[\w+/]{32,}=*/.exec(signature) ?? []
    t.ok(digest.length >= 40, signature)
    for (const written of [digest, digest.replaceAll('/', '\\/'), encodeURIComponent(digest)])
      t.notOk(body.includes(written), `${name} ${body}`)
    t.match(body, /«redacted»/)
    t.match(body, 'x-gatehouse-replay', 'the rest is there')
  }
  const id = await accepted(deliver(base, 'code_host', '{"echo":1}'))
  await check(id, 'x-hub-signature-256')
  const signing = await addSigned(base, 'echoed')
  for (const n of [1, 2, 3, 4, 5]) {
    const delivered = await sendStandard(base, 'echoed', signing, `{"n":${n}}`)
    await check(delivered.json<Ack>().id, 'webhook-signature')
  }
})

await t.test('no credential and nothing of the old connection is sent on', async (t) => {
  const token = await addProvider(base, 'ci')
  const body = Buffer.from([0xff, 0xfe, 0x00, 0x0a, 0x22])
  const delivered = await post(base, 'generic/ci', [body], {
    'Content-Type': 'application/octet-stream',
    Authorization: `Bearer ${token}`,
    Cookie: 'session=1',
    'X-Api-Key': 'k',
    'X-My-Signature': 's',
    'X-Event-Type': 'build.finished',
    'Idempotency-Key': 'run-1',
    'X-Forwarded-For': '203.0.113.9',
    'X-Real-IP': '203.0.113.9',
    'CF-Connecting-IP': '203.0.113.9',
    'Remote-User': 'ann',
    Via: '1.1 proxy',
    Forwarded: 'for=203.0.113.9',
    TE: 'trailers',
    Connection: 'close, X-Hop',
    'X-Hop': 'mine',
    Referer: `https://ci.test/?token=${token}`,
    'X-Custom': 'kept',
  })
  const { id } = delivered.json<Ack>()
  t.match(await sent(id, `${url}/in?a=b`), { outcome: 'delivered' })
  const got = receiver.received.at(-1)
  t.ok(got?.body.equals(body))
  t.equal(got?.path, '/in?a=b')
  const { 'cdn-loop': loop, ...headers } = got?.headers ?? {}
  t.ok(loop)
  t.same(headers, {
    connection: 'close',
    'content-length': '5',
    'content-type': 'application/octet-stream',
    host: `127.0.0.1:${port}`,
    'idempotency-key': 'run-1',
    'x-custom': 'kept',
    'x-event-type': 'build.finished',
    'x-gatehouse-replay': String(id),
  })
})

await t.test('each attempt is kept, newest first, with its reason', async (t) => {
  const id = await send()
  t.same(await attemptsOf(base, id), [])
  const answers = []
  for (const path of ['good', 'moved', 'broken', 'gone']) {
    answers.push(await replay(base, id, `${url}/${path}?token=geheim-geheim`))
  }
  const target = (path: string) => `${url}/${path}?token=«redacted»`
  t.match(await attemptsOf(base, id), [
    { outcome: 'failed', answer: 'none', detail: /socket hang up/, target: target('gone') },
    { outcome: 'failed', answer: /^500 /, detail: '', target: target('broken') },
    { outcome: 'failed', answer: /^307 /, detail: 'redirects are not followed' },
    { outcome: 'delivered', answer: /^204 /, target: target('good') },
  ])
  t.equal(inside.connections(), 0, 'the redirect was not followed')
  t.match(answers[2]?.text, /<details open>\s*<summary>What/, 'of what was just sent')
  const later = await pageOf(`/log/${id}?tab=deliveries`)
  t.match(later, /<details>\s*<summary>What/)
  t.notMatch(later, /role="status">\s*(Not d|D)elivered/, 'only what was just done is announced')
  const moved = /role="status">Not delivered: the target answered 307 in \d+ ms; redirects/
  t.match(answers[1]?.text, moved)
  t.match(answers[0]?.text, /role="status">Delivered: 204 in \d+ ms/)
})

await t.test('the beginning of the answer is kept for the page', async (t) => {
  const id = await send()
  const redacted =
    'you sent /told?token=«redacted» {"token":"«redacted»"} https:\\/\\/x.test\\/?token=«redacted»'
  const bodies: Readonly<Record<string, string>> = {
    good: '',
    text: '{"ok": true,\n "message": "stored <b>"}',
    bytes: 'a\u{FFFD}\u{FFFD}\u{FFFD}b\nc',
    // 5 KiB are read.
    long: 'é'.repeat(2_560),
    pair: `${'x'.repeat(4_095)}\u{FFFD}`,
    endless: `begun ${'x'.repeat(4_090)}`,
    'told?token=geheim-geheim': redacted,
  }
  for (const [path, body] of Object.entries(bodies)) {
    t.equal((await sent(id, `${url}/${path}`))?.body, body, path)
  }
  const [newest] = await attemptsOf(base, id)
  t.match(newest, { outcome: 'failed', answer: /^400 /, body: redacted }, 'it stays on the page')
})

await t.test('what is not on the public internet must be allowed', async (t) => {
  const id = await send()
  // test/kernel/outbound.test.ts has all spellings of addresses.
  const targets = [
    `http://127.0.0.1:${inside.port}/`,
    `http://localhost:${port}/`,
    `http://2130706433:${inside.port}/`,
    `http://[::1]:${port}/`,
    'http://10.0.0.1/',
    'http://169.254.169.254/latest/meta-data/',
  ]
  for (const target of targets) t.match(await sent(id, target), REFUSED, target)
  t.equal((await attemptsOf(base, id)).length, targets.length, 'each is recorded')
  t.equal(inside.connections(), 0, 'and none was connected to')

  const wanted = `http://localhost:${port}/hook?a=1`
  const save = (value: string) => postForm(base, '/settings', { replay_default_target: value })
  await save(wanted)
  t.match(await sent(id), { outcome: 'delivered', target: wanted }, 'but the default target is')
  const bare = await request(`${base}/log/${id}/replay`, { method: 'POST' })
  t.match(attemptsIn(bare.text)[0], { target: wanted }, 'a post without any body')
  t.match(await sent(id, wanted.replace('localhost', 'LOCALHOST')), { outcome: 'delivered' })
  t.match(await pageOf(`/log/${id}`), /Empty = the default target/)
  for (const other of [`http://localhost:${port}/hook`, wanted.replace('http:', 'https:')]) {
    t.match(await sent(id, other), REFUSED, other)
  }
  await save('')
  t.match(await sent(id, wanted), REFUSED, 'no longer the default')

  const broken = { HOOKS_REPLAY_TARGETS: 'localhost, http://10.0.0.1' }
  const { code, stderr } = await runCli(['migrate'], { env: broken })
  t.equal(code, 1)
  t.match(
    stderr,
    /^gatehouse: HOOKS_REPLAY_TARGETS is not valid \(entry 2 is no host or host:port/,
  )
})

await t.test('an event is sent with another body, signed for it', async (t) => {
  const id = await accepted(deliver(base, 'code_host', '{"n":1}\n'))
  t.match(await pageOf(`/log/${id}/edit`), '{&quot;n&quot;:1}')
  t.match(await pageOf(`/log/${id}`), `href="/log/${id}/edit"`)
  // A form sends line breaks as CRLF.
  const payload = '{"n":2}\r\n'
  const fields = { content_type: 'application/x-edited', payload, target_url: `${url}/code_host` }
  const { text } = await postForm(base, `/log/${id}/edit`, fields)
  t.match(attemptsIn(text), [{ outcome: 'delivered', kind: 'replay, edited' }])
  const got = receiver.received.at(-1)
  t.equal(String(got?.body), '{"n":2}\n')
  t.match(got?.headers, {
    'content-type': 'application/x-edited',
    'x-gatehouse-replay': String(id),
    'x-gatehouse-edited': 'true',
  })
  const stored = await request(`${base}/log/${id}/payload`)
  t.equal(stored.text, '{"n":1}\n', 'the stored event does not change')
  await postForm(base, `/log/${id}/edit`, { payload: '', target_url: `${url}/empty` })
  t.match(receiver.received.at(-1)?.headers, { 'content-length': '0' })
  t.equal(receiver.received.at(-1)?.headers['content-type'], undefined)
  await sent(id, `${url}/again`)
  t.equal(receiver.received.at(-1)?.headers['x-gatehouse-edited'], undefined)
  for (const body of [Buffer.from([0xff, 0]), 'x'.repeat(256 * 1024 + 1)]) {
    const other = await send('note', body)
    t.match(await pageOf(`/log/${other}/edit`), 'Only text of at most 256 KB')
  }
})

await t.test('two answers of an event are compared', async (t) => {
  const id = await send()
  const answer = (text: string) => replay(base, id, `${url}/answer/${encodeURIComponent(text)}`)
  const one = await answer('{"ok":true,"n":"<1>"}')
  t.notMatch(one.text, 'Compare answers', 'there is one answer alone')
  await answer('{"ok":true,"n":2}')
  await answer('{"n":2,"ok":true}')
  const last = await answer('line 1')
  t.match(last.text, 'Compare answers')
  const ids = allIn(last.text, /data-attempt="(\d+)"/g)
  const compared = (answer = '', other = '') =>
    pageOf(`/log/${id}?answer=${answer}&other=${other}`)
  const [text, third, second, first] = ids
  t.match(await compared(second, first), /Member.*&quot;&lt;1&gt;&quot;/s)
  t.match(await compared(third, second), 'The values are the same')
  t.match(await compared(text, third), /Compared answers.*Line/s)
  t.match(await compared(text, text), 'The answers are the same.')
  t.match(await compared(text, '1'), 'One of these answers is not kept any more')
})

await t.test('the menu offers where events were sent lately, and a command', async (t) => {
  const id = await send()
  for (const target of [`${url}/lately`, `${url}/?token=hush-hush`, 'http://10.0.0.1/never']) {
    await replay(base, id, target)
  }
  const other = await send()
  const text = await pageOf(`/log/${other}`)
  const offered = allIn(text, /name="target_url" value="([^"]+)"/g)
  t.equal(offered[0], `${url}/lately`)
  t.ok(offered.length <= 5)
  t.notMatch(offered.join(' '), /token|never/, 'none that lacks its token, or was refused')
  t.match(await pageOf(`/log/${id}`), 'Deliveries (3)')
  const command = `gatehouse forward http://127.0.0.1:3000/ --from '${base}'`
  t.match(
    plain(text),
    `${command} --provider 'generic:open' --since ${other} --name 'from event ${other}'`,
  )
})

await t.test('a filter of the log is counted, with bounds that stay', async (t) => {
  const log = await pageOf('/log?event_type=order.paid&since=24h')
  t.match(log, '"/replays/new?event_type=order.paid&amp;since=24h"')
  const shown = await pageOf('/replays/new?event_type=order.paid&since=24h')
  t.match(shown, 'Replay 1 event')
  t.match(shown, `event ${paid}; newer ones are not sent`)
  t.match(shown, /name="since" value="\d{4}-\d\d-\d\dT/, 'not a duration, which moves')
  t.match(await pageOf('/replays/new?event_type=order.*'), 'Replay 2 events')
  t.match(await pageOf(`/replays/new?json=${encodeURIComponent('n=<1>')}`), 'Replay 1 event')
  const none = await pageOf('/replays/new?event_type=nothing')
  t.match(none, 'No event matches these filters.')
  t.notMatch(none, 'name="target_url"')
})

await t.test('what is refused sends nothing, and is not recorded', async (t) => {
  const id = await send()
  const one = (target_url: string) => formCall(`/log/${id}/replay`, { target_url })
  const edit = (more: Record<string, string>, headers = {}) =>
    formCall(`/log/${id}/edit`, { payload: 'x', target_url: url, ...more }, headers)
  const highest_id = String(last)
  const many = (fields: Record<string, string>, headers = {}) =>
    formCall('/replays', { highest_id, target_url: url, ...fields }, headers)
  const none = /Give a target URL/
  const wrong = ['ftp://127.0.0.1/', 'http://', 'hook', 'http://:pw@127.0.0.1/']
  const state = async () => [
    receiver.received.length,
    await attemptsOf(base, id),
    (await pageOf('/replays')).length,
  ]
  await refuseAll(t, { service: 'hooks', base, state }, [
    ...wrong.map((target): Refusal => {
      return [one(target), 422, /^(?!.*pw).* must be an http:\/\/ or https:\/\/ URL/]
    }),
    [one('  '), 422, undefined, none],
    [formCall(`/log/${id}/replay`, {}), 422, undefined, none],
    [formCall(`/log/${id}/replay`, { target_url: url }, FOREIGN), 403],
    [formCall('/log/999999/replay', { target_url: url }), 404],
    ['POST /log/x/replay', 404],
    [`GET /log/${id}/replay`, 405],
    [{ call: `POST /log/${id}/replay`, body: {} }, 415],
    [edit({}, FOREIGN), 403],
    [edit({ content_type: 'ü' }), 422, /content_type must be/],
    [edit({ payload: 'x'.repeat(256 * 1024 + 1) }), 422, /payload must be text of/],
    [edit({ payload: 'x'.repeat(1_100_000) }), 413],
    [edit({ target_url: '' }), 422, /no default target/],
    ['GET /log/999999/edit', 404],
    [{ ...edit({}), call: 'POST /log/999999/edit' }, 404],
    [many({}, FOREIGN), 403],
    [many({ highest_id: '' }), 422, /highest_id/],
    // The time that a search takes shows whether a text is in a payload.
    [
      { call: 'GET /replays/new?text=secret', headers: { 'user-agent': 'Mozilla/5.0' } },
      403,
      undefined,
      /another site may not search/,
    ],
    ['GET /replays/new?json=x', 400, /json must be/],
    ['GET /replays/none', 404],
    [formCall('/replays/none/cancel', {}), 404],
  ])
})

await t.test('attempts are bounded and go with their event', async (t) => {
  const [old, kept] = [await send(), await send()]
  await replay(base, old, 'http://10.0.0.1/')
  await postgres.query(
    env,
    `insert into hooks.attempts (event_id, kind, target, outcome, ms, at)
     select $1, 'replay', 'http://10.0.0.1/', 'refused', 0, now() from generate_series(1, 210)`,
    [kept],
  )
  await replay(base, kept, 'http://10.0.0.1/last')
  const listed = await attemptsOf(base, kept)
  t.equal(listed.length, 50)
  t.match(listed[0], { target: 'http://10.0.0.1/last' }, 'newest first')
  await postForm(base, '/settings', { retention_max_rows: '1' })
  const page = `${base}/log/${old}`
  await until(async () => (await request(page)).status === 404, 'retention to remove the event')
  const counts = 'select event_id::int as id, count(*)::int as n from hooks.attempts group by 1'
  t.same(await postgres.query(env, counts), [{ id: kept, n: 200 }])
})
