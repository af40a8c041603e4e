import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { rawExchange } from '../helpers/raw-http.ts'
import {
  deliver,
  dice,
  eventIds,
  FORM_TYPE,
  now,
  payloadOf,
  post,
  refusals,
  SIGNED,
  signatureHeaders,
  startHooks,
} from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

await eachBackend(t, 'signed receivers', async (t: Test, backend) => {
  const { base, server } = await startHooks(t, backend)

  await t.test('both spellings of the headers verify, and the neutral one wins', async (t) => {
    for (const provider of SIGNED) {
      const body = JSON.stringify({ spelling: provider })
      const neutral = signatureHeaders(provider, body)
      const real = signatureHeaders(provider, body, { spelling: 'real' })
      const wrong = { secret: 'another secret' }
      const wrongNeutral = signatureHeaders(provider, body, wrong)
      const wrongReal = signatureHeaders(provider, body, { ...wrong, spelling: 'real' })
      t.equal((await post(base, provider, body, neutral)).status, 202, `${provider} neutral`)
      t.equal((await post(base, provider, body, real)).status, 202, `${provider} real`)
      const right = { ...wrongReal, ...neutral }
      t.equal((await post(base, provider, body, right)).status, 202, `${provider} neutral right`)
      const beaten = { ...real, ...wrongNeutral }
      t.equal((await post(base, provider, body, beaten)).status, 401, `${provider} neutral wrong`)
    }
    const body = '{"time":"of both"}'
    const stale = { 'X-Slack-Request-Timestamp': '5', ...signatureHeaders('chat', body) }
    t.equal((await post(base, 'chat', body, stale)).status, 202, 'neutral time stamp wins')
  })

  await t.test('the freshness window holds in both directions', async (t) => {
    for (const provider of ['payments', 'chat'] as const) {
      const status = async (offset: number): Promise<number> => {
        const sent = await deliver(base, provider, '{"b":1}', {}, { at: now() + offset })
        return sent.status
      }
      t.equal(await status(-280), 202, `${provider}: 280 s old`)
      t.equal(await status(280), 202, `${provider}: 280 s ahead`)
      t.equal(await status(-330), 401, `${provider}: 330 s old`)
      t.equal(await status(330), 401, `${provider}: 330 s ahead`)
    }
    const rows = await until(async () => {
      const found = await refusals(base, '&provider=payments')
      return found.some(({ reason }) => reason.startsWith('stale')) && found
    }, 'the refusals to be listed')
    t.ok(rows.some(({ reason }) => /^stale by 3\d s$/.test(reason)))
    t.ok(rows.some(({ reason }) => /^(2\d|30) s ahead of the window$/.test(reason)))
  })

  await t.test('malformed signatures are 401', async (t) => {
    const body = '{"c":1}'
    const before = await eventIds(base)
    for (const provider of SIGNED) {
      const right = signatureHeaders(provider, body)
      const [name = '', value = ''] = Object.entries(right)[0] ?? []
      const bad: Record<string, string | readonly string[]> = {
        'upper-case hex': value.replace(/[0-9a-f]{64}$/, (hex) => hex.toUpperCase()),
        '63 digits': value.slice(0, -1),
        '65 digits': `${value}0`,
        'no prefix': value.slice(-64),
        'the header twice': [value, value],
        'an empty header': '',
      }
      for (const [what, sent] of Object.entries(bad)) {
        const { status } = await post(base, provider, body, { ...right, [name]: sent })
        t.equal(status, 401, `${provider}: ${what}`)
      }
      t.equal((await post(base, provider, body, right)).status, 202, `${provider}: right`)
    }
    t.equal((await eventIds(base)).length, before.length + SIGNED.length)
  })

  await t.test('garbage is refused, never an error of the server', async (t) => {
    const roll = dice(7)
    const before = await eventIds(base)
    const shapes = [
      'sha256=',
      't=',
      'v0=',
      'v1=',
      ',',
      ' ',
      '0'.repeat(64),
      `t=${now()},`,
      '\u00ff',
    ]
    for (let i = 0; i < 120; i++) {
      const junk = (): string =>
        Array.from({ length: roll(6) }, () =>
          roll(3) === 0 ? (shapes[roll(shapes.length)] ?? '') : String.fromCharCode(33 + roll(94)),
        ).join('')
      const provider = SIGNED[roll(3)] ?? 'chat'
      const names = Object.keys(signatureHeaders(provider, ''))
      const headers = Object.fromEntries(names.map((name) => [name, junk()]))
      const { status } = await post(base, provider, junk(), headers)
      if (status !== 401) t.fail(`${status} for ${JSON.stringify(headers)}, expected 401`)
    }
    t.same(await eventIds(base), before)
    t.notMatch(server.logs().join('\n'), /handler failed|unhandled/i)
  })

  await t.test('a handshake is verified first, then echoed, and stored never', async (t) => {
    const challenge = '3eZbrw1aBm2rZgRNFdxV <"&é'
    const body = JSON.stringify({ type: 'url_verification', challenge, token: 'ignored' })
    const before = await eventIds(base)
    for (const spelling of ['neutral', 'real'] as const) {
      const answer = await deliver(base, 'chat', body, {}, { spelling })
      t.equal(answer.status, 200)
      t.equal(answer.headers['content-type'], 'application/json')
      t.same(answer.json(), { challenge })
    }
    const time = { 'X-Chat-Request-Timestamp': String(now()) }
    const unsigned = await post(base, 'chat', body, time)
    t.equal(unsigned.status, 401, 'unsigned')
    t.equal((await post(base, 'chat', body)).status, 400, 'without time stamp')
    const wrong = await deliver(base, 'chat', body, {}, { secret: 'another' })
    t.equal(wrong.status, 401, 'wrongly signed')
    const stale = await deliver(base, 'chat', body, {}, { at: now() - 1_000 })
    t.equal(stale.status, 401, 'stale')
    for (const { text } of [unsigned, wrong, stale]) t.notMatch(text, /3eZbrw1aBm2rZgRNFdxV/)
    t.same(await eventIds(base), before)
    const ordinary = await deliver(base, 'code_host', body)
    t.equal(ordinary.status, 202, 'an ordinary event of another provider')
  })

  await t.test('forms are read as forms when their type says so', async (t) => {
    const typed = { 'Content-Type': 'Application/X-WWW-Form-Urlencoded; charset=utf-8' }
    for (const body of ['a=1', 'payload=%7B%7D', '[1]', 'no pairs']) {
      t.equal((await deliver(base, 'code_host', body, FORM_TYPE)).status, 202, body)
      t.equal((await deliver(base, 'code_host', body, typed)).status, 202, `${body}, typed`)
      t.equal((await deliver(base, 'code_host', body)).status, 400, `${body} as JSON`)
      const text = { 'Content-Type': 'text/plain' }
      t.equal((await deliver(base, 'code_host', body, text)).status, 400, `${body} as text`)
    }
    // JSON is JSON, whatever its type says.
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'nonsense']) {
      const sent = await deliver(base, 'payments', '{"d":1}', { 'Content-Type': type })
      t.equal(sent.status, 202, type)
    }
  })

  await t.test('bytes that are no UTF-8 verify as bytes and stay bytes', async (t) => {
    const body = Buffer.concat([
      Buffer.from('{"e":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ])
    for (const provider of SIGNED) {
      const sent = await deliver(base, provider, body)
      t.equal(sent.status, 202, provider)
      t.ok(body.equals(await payloadOf(base, sent.json<Ack>().id)), `${provider}: stored`)
    }
  })

  await t.test('header names count in any case', async (t) => {
    const body = '{"f":1}'
    const { 'X-CodeHost-Signature-256': value } = signatureHeaders('code_host', body)
    const head = `POST /webhooks/code_host HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}`
    const text = `${head}\r\nx-cOdEhOsT-sIgNaTuRe-256: ${value}\r\n\r\n${body}`
    const answer = await rawExchange(Number(new URL(base).port), text)
    t.match(answer.text, /^HTTP\/1\.1 202 /)
  })
})
