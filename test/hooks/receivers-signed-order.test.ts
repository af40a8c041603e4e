import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import type { Response } from '../helpers/http.ts'
import {
  deliver,
  enable,
  eventIds,
  now,
  post,
  SECRETS,
  signatureHeaders,
  startHooks,
} from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'

const LIMIT = 2_048
const LONG = JSON.stringify({ text: 'x'.repeat(LIMIT) })
const WRONG = { 'X-CodeHost-Signature-256': `sha256=${'0'.repeat(64)}` }

/** A refusal in the shape of the contract, with nothing of a signature in it. */
function problem(status: number, instance: string, detail: RegExp): Record<string, unknown> {
  return { type: 'about:blank', title: String, status, detail, instance }
}

// Each request here is wrong in every later way too: what comes first decides.
await onPostgres(t, 'signed receivers check in their order', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend, {
    HOOKS_PAYMENTS_SECRET: '',
    HOOKS_MAX_BODY: String(LIMIT),
  })
  function refused(response: Response, status: number, path: string, detail: RegExp): void {
    t.equal(response.status, status, `${path}: ${response.text}`)
    t.equal(response.headers['content-type'], 'application/problem+json')
    const body = response.json<Record<string, unknown>>()
    t.match(body, problem(status, `/webhooks/${path}`, detail))
    t.same(Object.keys(body), ['type', 'title', 'status', 'detail', 'instance'])
    t.notMatch(response.text, /[0-9a-f]{16}/, 'no signature in the answer')
  }

  await t.test('404 unknown or unconfigured comes before everything', async () => {
    const unknown = /No signed provider/
    refused(await post(base, 'nobody', LONG, WRONG), 404, 'nobody', unknown)
    refused(await post(base, 'payments', LONG), 404, 'payments', unknown)
    refused(await deliver(base, 'payments', '{}'), 404, 'payments', unknown)
    refused(await post(base, 'generic', LONG), 404, 'generic', unknown)
    refused(await post(base, 'CODE_HOST', LONG), 404, 'CODE_HOST', unknown)
    // Whatever an operator says of it: without its secret it is unconfigured, not disabled.
    await enable(base, 'payments', false)
    refused(await post(base, 'payments', LONG), 404, 'payments', unknown)
  })

  await t.test('403 disabled comes before 413, 400 and 401', async () => {
    for (const provider of ['chat', 'code_host'] as const) {
      await enable(base, provider, false)
      refused(await post(base, provider, LONG), 403, provider, /disabled/)
      refused(await post(base, provider, 'x'), 403, provider, /disabled/)
      refused(await deliver(base, provider, '{}'), 403, provider, /disabled/)
      await enable(base, provider, true)
    }
  })

  await t.test('413 comes before 400 and 401', async () => {
    for (const body of [LONG, [LONG.slice(0, 9), LONG.slice(9)]]) {
      refused(await post(base, 'chat', body), 413, 'chat', /limit of 2048 bytes/)
      refused(await post(base, 'code_host', body, WRONG), 413, 'code_host', /limit/)
    }
    refused(await deliver(base, 'chat', LONG), 413, 'chat', /limit/)
  })

  await t.test('400 missing time stamp comes before 401', async () => {
    refused(await post(base, 'chat', 'x'), 400, 'chat', /X-Chat-Request-Timestamp/)
    const { 'X-Chat-Signature': signature = '' } = signatureHeaders('chat', '{}')
    const only = { 'X-Chat-Signature': signature }
    refused(await post(base, 'chat', '{}', only), 400, 'chat', /X-Chat-Request-Timestamp/)
  })

  await t.test('401 comes before the 400 of a body', async () => {
    const wrong = /signature/
    const time = { 'X-Chat-Request-Timestamp': String(now()) }
    refused(await post(base, 'chat', 'x', time), 401, 'chat', wrong)
    refused(await post(base, 'code_host', 'x'), 401, 'code_host', wrong)
    refused(await post(base, 'code_host', 'x', WRONG), 401, 'code_host', wrong)
    const malformed = { 'X-CodeHost-Signature-256': 'nonsense' }
    refused(await post(base, 'code_host', 'x', malformed), 401, 'code_host', wrong)
    refused(await deliver(base, 'chat', 'x', {}, { at: now() - 400 }), 401, 'chat', wrong)
    refused(await deliver(base, 'chat', 'x', {}, { at: now() + 400 }), 401, 'chat', wrong)
    refused(await deliver(base, 'chat', 'x', {}, { secret: 'another' }), 401, 'chat', wrong)
  })

  await t.test('400 body that is neither a JSON object nor a form', async () => {
    for (const body of ['', 'x', '[1]', '7', '"text"', 'null', '{"a":', '\0', '{} {}']) {
      for (const provider of ['code_host', 'chat'] as const) {
        refused(await deliver(base, provider, body), 400, provider, /JSON object/)
      }
    }
  })

  await t.test('nothing of all this was stored, and what is right is', async () => {
    t.same(await eventIds(base), [])
    const first = await deliver(base, 'code_host', '{"a":1}')
    t.equal(first.status, 202)
    t.equal(first.headers['content-type'], 'application/json')
    const ack = first.json<Ack>()
    t.same(Object.keys(ack).sort(), ['id', 'provider', 'received_at', 'trust_mode', 'verified'])
    t.match(ack, { provider: 'code_host', trust_mode: 'signed', verified: true })
    t.match(ack.received_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    t.ok(Number.isSafeInteger(ack.id), 'an integer id')
    const second = await deliver(base, 'chat', '{"a":1}')
    t.same(await eventIds(base), [second.json<Ack>().id, ack.id])
  })
})

t.test(
  'a provider without a current secret is unconfigured, the previous one alone is none',
  async (t) => {
    const { base } = await startHooks(t, backends[1], {
      HOOKS_CODE_HOST_SECRET: '',
      HOOKS_CODE_HOST_SECRET_PREVIOUS: SECRETS.code_host,
    })
    t.equal((await deliver(base, 'code_host', '{}')).status, 404)
    t.equal((await post(base, 'code_host', '{}', { 'X-CodeHost-Signature-256': '' })).status, 404)
  },
)
