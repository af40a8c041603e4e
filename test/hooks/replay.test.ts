import { verify } from '@octokit/webhooks-methods'
import Stripe from 'stripe'
import { Webhook } from 'standardwebhooks'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { attemptsIn, attemptsOf, replay, startReceiver } from '../helpers/replays.ts'
import type { Received } from '../helpers/replays.ts'
import { addSigned, change, secretKey, sendStandard, signingSecret } from '../helpers/senders.ts'
import {
  FORM_TYPE,
  SECRETS,
  addProvider,
  deliver,
  eventIds,
  hmac,
  now,
  post,
  postForm,
  shown,
  startHooks,
} from '../helpers/hooks.ts'
import type { Ack, Signed } from '../helpers/hooks.ts'

/** Signed a good while ago, but within the window: a replay must sign with the present time. */
const EARLIER = (): number => now() - 250

/** A receiver of each sender's as its users write it: with the sender's own library. */
const VERIFIERS: Readonly<Record<Signed, (got: Received) => Promise<boolean> | boolean>> = {
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
}

const BODIES: Readonly<Record<Signed, string>> = {
  code_host: '{"zen": "Ünïcode, \\u001b and  spaces"}\n',
  payments: JSON.stringify({ id: 'evt_1', object: 'event', type: 'charge.paid' }, null, 2),
  chat: 'command=%2Fdeploy&text=now&trigger_id=1.2.3',
}

const [, postgres] = backends
const { base } = await startHooks(t, postgres, {
  GATEHOUSE_SECRET_KEY: secretKey(),
  HOOKS_REPLAY_TARGETS: 'example.test, 127.0.0.1',
})

await t.test('signed events', async (t: Test) => {
  const receiver = await startReceiver(t, async (got, response) => {
    const provider = got.path.slice(1) as Signed
    const good = await Promise.resolve()
      .then(() => VERIFIERS[provider](got))
      .catch(() => false)
    response.writeHead(good ? 202 : 401).end()
  })

  for (const provider of ['code_host', 'payments', 'chat'] as const) {
    await t.test(`a receiver of ${provider} accepts a replay`, async (t) => {
      const extra = {
        ...(provider === 'chat' ? FORM_TYPE : {}),
        'X-GitHub-Event': 'ping',
        'X-GitHub-Delivery': `delivery-${provider}`,
        'User-Agent': 'Sender-Hookshot/1',
      }
      const sent = await deliver(base, provider, BODIES[provider], extra, {
        at: EARLIER(),
        spelling: 'real',
      })
      const { id } = sent.json<Ack>()
      const answer = await replay(base, id, `${receiver.url}/${provider}`)
      t.equal(answer.status, 200)
      const [attempt, ...others] = attemptsIn(answer.text)
      t.same(others, [])
      t.match(attempt, { outcome: 'delivered', kind: 'replay', answer: /^202 in \d+ ms$/ })
      t.equal(attempt?.target, `${receiver.url}/${provider}`)

      const got = receiver.received.at(-1)
      t.ok(got?.body.equals(Buffer.from(BODIES[provider])), 'the same bytes')
      t.equal(
        got?.headers['content-type'],
        provider === 'chat' ? FORM_TYPE['Content-Type'] : 'application/json',
      )
      t.match(got?.headers, {
        'x-github-event': 'ping',
        'x-github-delivery': `delivery-${provider}`,
        'user-agent': 'Sender-Hookshot/1',
        'x-gatehouse-replay': String(id),
      })
      t.same(await attemptsOf(base, id), [attempt], 'kept on its page')
    })
  }

  await t.test('an answer that echoes our signature is kept without it', async (t) => {
    const echo = await startReceiver(t, ({ headers }, response) => {
      const encoded = encodeURIComponent(String(headers['webhook-signature']))
      const escaped = JSON.stringify(headers).replaceAll('/', '\\/')
      response.writeHead(200).end(`${JSON.stringify(headers)}\n${escaped}\n${encoded}`)
    })
    const check = async (id: number, name: string): Promise<void> => {
      const [attempt] = attemptsIn((await replay(base, id, echo.url)).text)
      const sent = String(echo.received.at(-1)?.headers[name])
      const [digest = ''] = /[\w+/]{32,}=*/.exec(sent) ?? []
      t.ok(digest.length >= 40, sent)
      const body = attempt?.body ?? ''
      for (const written of [digest, digest.replaceAll('/', '\\/'), encodeURIComponent(digest)])
        t.notOk(body.includes(written), `${name} ${body}`)
      t.match(body, /«redacted»/)
      t.match(body, 'x-gatehouse-replay', 'the rest is there')
    }
    const { id } = (await deliver(base, 'code_host', '{"echo":1}')).json<Ack>()
    await check(id, 'x-hub-signature-256')
    const signing = await addSigned(base, 'echoed')
    for (const n of [1, 2, 3, 4, 5]) {
      const sent = await sendStandard(base, 'echoed', signing, `{"n":${n}}`)
      await check(sent.json<Ack>().id, 'webhook-signature')
    }
  })

  await t.test('another Gatehouse accepts it as a delivery of the provider', async (t) => {
    const other = await startHooks(t, postgres)
    const body = '{"event_id": "Ev1", "event": {"type": "app_mention"}}'
    const { id } = (await deliver(base, 'chat', body, {}, { at: EARLIER() })).json<Ack>()
    await replay(base, id, `${other.base}/webhooks/chat`)
    t.match(await attemptsOf(base, id), [{ outcome: 'delivered', answer: /^202 / }])
    const [arrived = 0] = await eventIds(other.base)
    const { facts } = await shown(other.base, arrived)
    t.match(facts, { 'Event type': 'app_mention', Verified: 'yes', 'Delivery id': 'Ev1' })
  })

  await t.test('by the Standard Webhooks scheme: with the present secret', async (t) => {
    let present = ''
    const receiver = await startReceiver(t, (got, response) => {
      const headers = Object.entries(got.headers).map(([name, value]) => [name, String(value)])
      let good = true
      try {
        new Webhook(present).verify(got.body, Object.fromEntries(headers))
      } catch {
        good = false
      }
      response.writeHead(good ? 204 : 401).end()
    })
    const signing = await addSigned(base, 'shop')
    const options = { id: 'msg_kept', at: now() - 200 }
    const { id } = (await sendStandard(base, 'shop', signing, '{"n":1}', options)).json<Ack>()
    present = signing
    t.match((await replay(base, id, receiver.url)).text, /Delivered: 204/)
    present = signingSecret()
    await change(base, 'generic:shop', 'rotate', { secret: present })
    t.match((await replay(base, id, receiver.url)).text, /Delivered: 204/, 'with the new one')
    for (const { headers, body } of receiver.received) {
      t.equal(headers['webhook-id'], 'msg_kept')
      t.ok(Math.abs(now() - Number(headers['webhook-timestamp'])) < 60, 'a fresh time')
      t.equal(body.toString(), '{"n":1}')
    }
    await change(base, 'generic:shop', 'remove')
    const gone = await replay(base, id, receiver.url)
    t.match(gone.text, /cannot be signed again/, 'without its sender there is no secret')
    t.equal(receiver.received.length, 2)
  })
})

await t.test('generic events', async (t: Test) => {
  const receiver = await startReceiver(t)
  const token = await addProvider(base, 'ci')
  const anEvent = async (): Promise<number> => {
    const headers = { Authorization: `Bearer ${token}` }
    return (await post(base, 'generic/ci', '{}', headers)).json<Ack>().id
  }
  const body = Buffer.from([0xff, 0xfe, 0x00, 0x0a, 0x22])

  await t.test('no credential and nothing of the old connection is sent on', async (t) => {
    const sent = await post(base, 'generic/ci', [body], {
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
    const { id } = sent.json<Ack>()
    t.match(attemptsIn((await replay(base, id, `${receiver.url}/in?a=b`)).text), [
      { outcome: 'delivered', answer: /^204 / },
    ])
    const got = receiver.received.at(-1)
    t.ok(got?.body.equals(body))
    t.equal(got?.path, '/in?a=b')
    const names = Object.keys(got?.headers ?? {}).toSorted()
    t.same(names, [
      'cdn-loop',
      'connection',
      'content-length',
      'content-type',
      'host',
      'idempotency-key',
      'x-custom',
      'x-event-type',
      'x-gatehouse-replay',
    ])
    t.equal(got?.headers['connection'], 'close')
    t.equal(got?.headers['host'], `127.0.0.1:${receiver.port}`)
    t.equal(got?.headers['content-length'], '5')
    t.equal(got?.headers['content-type'], 'application/octet-stream')
  })

  await t.test('each attempt is kept, newest first, with its reason', async (t) => {
    const id = await anEvent()
    t.same(await attemptsOf(base, id), [])
    const inside = await startReceiver(t)
    const redirecting = await startReceiver(t, (_, response) => {
      response.writeHead(307, { location: inside.url }).end()
    })
    const broken = await startReceiver(t, (_, response) => void response.writeHead(500).end('no'))
    const gone = await startReceiver(t, (_, response) => void response.destroy())
    const answers = []
    for (const { url } of [receiver, redirecting, broken, gone]) {
      answers.push(await replay(base, id, `${url}/?token=${token}`))
    }
    for (const { status } of answers) t.equal(status, 200, 'the list, whatever came of it')
    const target = (url: string): string => `${url}/?token=«redacted»`
    t.match(await attemptsOf(base, id), [
      { outcome: 'failed', answer: 'none', detail: /socket hang up/, target: target(gone.url) },
      { outcome: 'failed', answer: /^500 /, detail: '', target: target(broken.url) },
      { outcome: 'failed', answer: /^307 /, detail: 'redirects are not followed' },
      { outcome: 'delivered', answer: /^204 /, target: target(receiver.url) },
    ])
    t.equal(inside.connections(), 0, 'the redirect was not followed')
    t.match(
      answers[1]?.text,
      /role="status">Not delivered: the target answered 307 in \d+ ms; redirects/,
    )
    t.match(answers[0]?.text, /role="status">Delivered: 204 in \d+ ms/)
  })

  await t.test('the beginning of the answer is kept for the page', async (t) => {
    const id = await anEvent()
    const answers: Record<string, string | Buffer> = {
      '/text': '{"ok": true,\n "message": "stored <b>"}',
      '/empty': '',
      '/bytes': Buffer.from([0x61, 0xff, 0x00, 0x1b, 0x62, 0x0d, 0x0a, 0x63]),
      '/long': 'é'.repeat(5_000),
      '/pair': `${'x'.repeat(4_095)}😀`,
    }
    const answering = await startReceiver(t, ({ path }, response) => {
      const [name = ''] = path.split('?')
      const echo = `you sent ${path} {"token":"geheim-geheim"} https:\\/\\/x.test\\/?token=other`
      response.writeHead(name === '/echo' ? 400 : 200).end(answers[name] ?? echo)
    })
    const bodyOf = async (path: string): Promise<string | undefined> =>
      attemptsIn((await replay(base, id, `${answering.url}${path}`)).text)[0]?.body
    t.equal(await bodyOf('/text'), '{"ok": true,\n "message": "stored <b>"}')
    t.equal(await bodyOf('/empty'), '')
    t.equal(await bodyOf('/bytes'), 'a\u{FFFD}\u{FFFD}\u{FFFD}b\nc')
    t.equal(await bodyOf('/long'), 'é'.repeat(2_560), '5 KiB are read')
    t.equal(await bodyOf('/pair'), `${'x'.repeat(4_095)}\u{FFFD}`)
    const echoed = await bodyOf('/echo?token=geheim-geheim')
    t.equal(
      echoed,
      'you sent /echo?token=«redacted» {"token":"«redacted»"} https:\\/\\/x.test\\/?token=«redacted»',
    )
    const [attempt] = await attemptsOf(base, id)
    t.match(attempt, { outcome: 'failed', answer: /^400 /, body: echoed }, 'it stays on the page')
    const slow = await startReceiver(t, (_, response) => {
      response.writeHead(200)
      response.write('begun ')
      response.write('x'.repeat(20_000))
    })
    const begun = attemptsIn((await replay(base, id, slow.url)).text)[0]
    t.match(begun, { outcome: 'delivered', body: /^begun x+$/ }, 'an answer without an end')
    t.equal(begun?.body.length, 4_096)
  })

  await t.test('no target, or what is none, is refused and nothing recorded', async (t) => {
    const id = await anEvent()
    const bad = ['ftp://127.0.0.1/', 'http://', 'hook', 'http://:pw@127.0.0.1/', 'file:///etc']
    for (const target of bad) {
      const { status, text } = await replay(base, id, target)
      t.equal(status, 422, target)
      t.match(JSON.parse(text), { detail: /must be an http:\/\/ or https:\/\/ URL/ })
      t.notMatch(text, 'pw')
    }
    for (const target of [undefined, '', '  ']) {
      t.match((await replay(base, id, target)).json(), {
        status: 422,
        detail: /Give a target URL/,
      })
    }
    t.same(await attemptsOf(base, id), [])
    t.equal((await replay(base, 999_999, receiver.url)).status, 404)
    t.equal((await request(`${base}/log/x/replay`, { method: 'POST' })).status, 404)
    const wrong = await request(`${base}/log/${id}/replay`)
    t.match([wrong.status, wrong.headers.allow], [405, 'POST'])
    const json = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' }
    t.equal((await request(`${base}/log/${id}/replay`, json)).status, 415)
    const foreign = await replay(base, id, receiver.url, { 'Sec-Fetch-Site': 'cross-site' })
    t.equal(foreign.status, 403, 'no other site may send events on')
  })

  await t.test('the default target is used where none is given', async (t) => {
    const id = await anEvent()
    await postForm(base, '/settings', { replay_default_target: `${receiver.url}/default` })
    t.match(attemptsIn((await replay(base, id)).text), [{ target: `${receiver.url}/default` }])
    const bare = await request(`${base}/log/${id}/replay`, { method: 'POST' })
    t.match([bare.status, attemptsIn(bare.text).length], [200, 2], 'a post without any body')
    t.equal(receiver.received.at(-1)?.path, '/default')
    t.match((await request(`${base}/log/${id}`)).text, /Empty = the default target/)
    await postForm(base, '/settings', { replay_default_target: '' })
    t.equal((await replay(base, id)).status, 422)
  })

  await t.test('a browser without script gets the page around the list', async (t) => {
    const id = await anEvent()
    const page = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
    const answer = await replay(base, id, receiver.url, page)
    const location = `/log/${id}?replayed=1`
    t.match(answer, { status: 303, headers: { location } })
    const shown = await request(base + location)
    t.match(shown.text, /^<!doctype html>/)
    t.match(attemptsIn(shown.text), [{ outcome: 'delivered' }])
    t.match(shown.text, /role="status"[^>]*>\s*Delivered/)
    const refused = await replay(base, id, 'ftp://x/', page)
    t.equal(refused.status, 422)
    t.match(refused.text, /value="ftp:\/\/x\/"/)
    t.match(refused.text, /id="target_url-refused" class="refused">The target URL must be/)
    const fragment = await replay(base, id, receiver.url, { 'HX-Request': 'true' })
    t.match(fragment.text, /^<div id="event-body"/)
  })
})
