import { createHmac } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { t } from 'tap'
import type { Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { refuseCommands, runCli } from '../helpers/cli.ts'
import { destination, listed, untilListed } from '../helpers/destinations.ts'
import { addProvider, deliver, FORM_TYPE, post, postForm, startHooks } from '../helpers/hooks.ts'
import type { Ack } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { attemptsOf, startReceiver, type Received } from '../helpers/replays.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { secretKey, signingSecret } from '../helpers/senders.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

const LOCAL = { HOOKS_REPLAY_TARGETS: '127.0.0.1' }

await onPostgres(t, 'credentials of a destination', async (t: Test, backend) => {
  const { base, env, server } = await startHooks(t, backend, {
    ...LOCAL,
    GATEHOUSE_SECRET_KEY: secretKey(),
  })
  const api = apiOf(base)
  await addProvider(base, 'lan', { open: true })
  let status = 204
  const receiver = await startReceiver(t, ({ headers }, response) => {
    const { authorization = '' } = headers
    const [, pair = ''] = authorization.split(' ')
    const echo = { headers, pair: Buffer.from(pair, 'base64').toString(), json: `\\/${pair}` }
    response.writeHead(status).end(JSON.stringify(echo))
  })
  const url = `${receiver.url}/in`
  const newest = (): Pick<Received, 'headers' | 'body'> =>
    receiver.received.at(-1) ?? { headers: {}, body: Buffer.of() }
  const send = async (body = '{"n":1}') => (await post(base, 'generic/lan', body)).json<Ack>().id

  await t.test('its own secret signs events that came without a signature', async (t) => {
    const own = signingSecret()
    const made = await api('POST', '/destinations', {
      name: 'own',
      url,
      sign_with: { secret: own },
    })
    t.match(made.json, { sign_with: { scheme: 'standard', secret: 'configured' } })
    t.notMatch(made.text, own)
    await send()
    await untilListed(env, 'own', { delivered: 1 })
    const { headers, body } = newest()
    // The library of https://www.standardwebhooks.com checks as receivers do.
    const checked = new Webhook(own).verify(body.toString(), headers as Record<string, string>)
    t.same(checked, { n: 1 })
    t.equal(headers['webhook-id'], headers['idempotency-key'])

    // Of a provider that signs: its secret is neither needed nor used.
    await deliver(base, 'code_host', '{"n":2}')
    await untilListed(env, 'own', { delivered: 2 })
    t.equal(newest().headers['x-hub-signature-256'], undefined)
    t.same(new Webhook(own).verify('{"n":2}', newest().headers as Record<string, string>), {
      n: 2,
    })

    const text = secret('own-github')
    const set = await api('PUT', '/destinations/own', {
      url,
      sign_with: { scheme: 'github', secret: text },
    })
    t.equal(set.status, 200)
    await send('{"n":3}')
    await untilListed(env, 'own', { delivered: 3 })
    const expected = createHmac('sha256', text).update('{"n":3}').digest('hex')
    t.equal(newest().headers['x-hub-signature-256'], `sha256=${expected}`)
    await destination(env, 'remove', 'own')
  })

  await t.test(
    'headers and authorization are sent, never shown, and no answer keeps them',
    async (t) => {
      const [key, token, password] = [secret('api-key'), secret('bearer'), secret('basic/"pw')]
      status = 500
      const bearer = `Bearer ${token}`
      const made = await api('POST', '/destinations', {
        ...{ name: 'auth', url, headers: { 'X-Api-Key': key }, authorization: bearer },
      })
      t.match(made.json, { headers: { 'x-api-key': 'configured' }, authorization: 'configured' })
      const id = await send()
      await untilListed(env, 'auth', { waiting: 1, last_status: 500 })
      t.match(newest().headers, { 'x-api-key': key, authorization: bearer })
      const pair = keepSecret('pair', Buffer.from(`ann:${password}`).toString('base64'))
      await api('PUT', '/destinations/auth', { url, authorization: `Basic ann:${password}` })
      await destination(env, 'retry', 'auth')
      await until(async () => (await attemptsOf(base, id)).length === 2, 'the second try')
      t.match(newest().headers, { 'x-api-key': key, authorization: `Basic ${pair}` })
      const attempts = await attemptsOf(base, id)
      t.ok(attempts.length > 0)
      const pages = [
        ...attempts.map(({ body }) => body),
        (await request(`${base}/destinations/auth`)).text,
        (await api('GET', '/destinations')).text,
        (await destination(env, 'list', '--json')).stdout,
      ]
      for (const text of pages) {
        for (const hidden of [key, token, pair, password]) t.notOk(text.includes(hidden))
      }
      t.match(attempts[0]?.body, '«redacted»')
      status = 204
      await destination(env, 'remove', 'auth')
    },
  )

  await t.test('what is left out of a change stays, and null removes it', async (t) => {
    const [own, key] = [signingSecret(), secret('kept')]
    const first = { sign_with: { secret: own }, headers: { 'X-A': key, 'X-B': key } }
    await api('POST', '/destinations', {
      name: 'kept',
      url,
      ...first,
      authorization: `Bearer ${key}`,
    })
    await api('PUT', '/destinations/kept', { url, headers: { 'X-B': null, 'X-C': key } })
    const given = (await api<{ headers: object }>('GET', '/destinations/kept')).json
    t.match(given, { sign_with: { scheme: 'standard' }, authorization: 'configured' })
    t.same(given.headers, { 'x-a': 'configured', 'x-c': 'configured' })
    // What was read may be sent back.
    const again = {
      url,
      headers: given.headers,
      authorization: 'configured',
      sign_with: { scheme: 'standard', secret: 'configured' },
    }
    t.equal((await api('PUT', '/destinations/kept', again)).status, 200)
    await send()
    await untilListed(env, 'kept', { delivered: 1 })
    t.match(newest().headers, { 'x-a': key, 'x-c': key, authorization: `Bearer ${key}` })
    t.equal(newest().headers['x-b'], undefined)
    t.ok(new Webhook(own).verify('{"n":1}', newest().headers as Record<string, string>))
    const none = { url, headers: null, authorization: null, sign_with: null }
    t.match((await api('PUT', '/destinations/kept', none)).json, {
      ...{ sign_with: null, authorization: null, headers: {} },
    })
    await send()
    await untilListed(env, 'kept', { delivered: 2 })
    t.equal(newest().headers.authorization, undefined)
    t.equal(newest().headers['webhook-signature'], undefined)
    await destination(env, 'remove', 'kept')
  })

  await t.test('without the key nothing is sent, and the last answer says why', async (t) => {
    await api('POST', '/destinations', {
      name: 'sealed',
      url,
      sign_with: { secret: signingSecret() },
    })
    await server.stop()
    const { GATEHOUSE_SECRET_KEY: _, ...others } = env
    const { hooks } = await startServer(t, { services: ['hooks'], env: others })
    const sent = receiver.received.length
    await post(hooks, 'generic/lan', '{}')
    const row = await untilListed(others, 'sealed', { waiting: 1, last_status: null })
    await untilListed(others, 'sealed', {
      last_detail:
        "the credentials of the destination can't be read: GATEHOUSE_SECRET_KEY is not set",
    })
    t.equal(row.delivered, 0)
    t.equal(receiver.received.length, sent)
    const change = {
      call: 'PUT /api/v1/destinations/sealed',
      body: { url, authorization: 'Bearer x' },
    }
    await refuseAll(t, { service: 'hooks', base: hooks, state: () => listed(others, 'sealed') }, [
      [change, 422, undefined, /^Secrets of destinations are stored encrypted: set GATEHOUSE_S/],
    ])
  })
})

await onPostgres(t, 'credentials: faces and refusals', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend, {
    ...LOCAL,
    GATEHOUSE_SECRET_KEY: secretKey(),
  })
  const url = 'http://127.0.0.1:9/'
  const [own, token, key] = [signingSecret(), secret('token'), secret('header')]
  const state = () => listed(env, 'erp')

  await t.test('a command takes secrets from a file or from standard input', async (t) => {
    const folder = await temporaryFolder(t)
    const file = join(folder, 'secret')
    await writeFile(file, `${own}\n`)
    const add = ['destination', 'add', 'erp', url, '--sign-secret', file, '--authorization', '-']
    t.match(await runCli(add, { env, input: `Bearer ${token}\n` }), { code: 0 })
    await writeFile(file, `X-Key: ${key}\nX-Other: ${key}\n`)
    t.match(await destination(env, 'set', 'erp', '--headers', file), { code: 0 })
    t.match(await state(), {
      sign_with: { scheme: 'standard', secret: 'configured' },
      headers: { 'x-key': 'configured', 'x-other': 'configured' },
      authorization: 'configured',
    })
    t.match(await destination(env, 'set', 'erp', '--without', 'authorization,headers'), {
      code: 0,
    })
    t.match(await state(), { sign_with: { scheme: 'standard' }, headers: {}, authorization: null })
  })

  await t.test('a page keeps what is left empty', async (t) => {
    const fields = { url, sign_with: 'standard', sign_secret: '', headers: `X-Key: ${key}` }
    const saved = await postForm(base, '/destinations/erp', {
      ...fields,
      authorization: `Bearer ${token}`,
    })
    t.match(saved, { status: 200, headers: { 'gatehouse-done': 'Saved.' } })
    t.match(await state(), { sign_with: { scheme: 'standard' }, authorization: 'configured' })
    const removal = { url, sign_with: '', headers: 'X-Key:', remove_authorization: 'true' }
    await postForm(base, '/destinations/erp', removal)
    t.match(await state(), { sign_with: null, headers: {}, authorization: null })
    const page = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
    const typed = {
      url,
      rate: 'x',
      sign_with: 'standard',
      sign_secret: own,
      headers: `X-Key: ${key}`,
    }
    const refused = await postForm(base, '/destinations/erp', typed, page)
    t.equal(refused.status, 422)
    t.notOk(
      refused.text.includes(own) || refused.text.includes(key),
      'secrets are not shown again',
    )
  })

  await t.test('what is refused', async (t) => {
    const put = (body: object) => ({
      call: 'PUT /api/v1/destinations/erp',
      body: { url, ...body },
    })
    const header = (name: string, value: unknown = 'v') => put({ headers: { [name]: value } })
    const form = (fields: Readonly<Record<string, string>>) => ({
      ...{ call: 'POST /destinations/erp', headers: FORM_TYPE },
      body: new URLSearchParams({ url, ...fields }).toString(),
    })
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`x-${n}`, 'v']))
    const rows: readonly Refusal[] = [
      [put({ sign_with: 'standard' }), 400, undefined, /^sign_with must be \{"scheme"/],
      [put({ sign_with: { scheme: 'gitlab', secret: key } }), 400],
      [put({ sign_with: { scheme: 'ed25519', secret: key } }), 400],
      [put({ sign_with: { scheme: 'standard', key } }), 400],
      [
        put({ sign_with: { scheme: 'standard' } }),
        422,
        undefined,
        /secret of sign_with is missing/,
      ],
      [put({ sign_with: { secret: 'short' } }), 422, undefined, /sign_with must be "whsec_"/],
      [put({ sign_with: { scheme: 'github', secret: 'short' } }), 422, undefined, /8 to 256/],
      [put({ authorization: 'x' }), 422, undefined, /^authorization must be "Bearer TOKEN"/],
      [put({ authorization: 'Bearer a b' }), 422],
      [put({ authorization: 'Bearer a\r\nX-Evil: 1' }), 422],
      [put({ authorization: 'Basic nopair' }), 422],
      [put({ authorization: `Bearer ${'x'.repeat(4_100)}` }), 422],
      [put({ authorization: 5 }), 400, undefined, /^authorization must be a text/],
      [put({ authorization: 'configured' }), 422, undefined, /^authorization/],
      [header('X-Key', 'configured'), 422, undefined, /no secret that "configured" stands for/],
      [header('X-Key', 5), 400, undefined, /^headers must be an object/],
      [put({ headers: ['X-Key'] }), 400],
      [header('X Key'), 422, undefined, /^headers must have names such as X-Tenant/],
      [put(JSON.parse('{"headers": {"__proto__": "v"}}') as object), 422],
      [header('X-Key', 'a\r\nX-Evil: 1'), 422, undefined, /printable ASCII/],
      [header('X-Key', ''), 422],
      [header('X-Key', 'ü'), 422],
      [header('Authorization'), 422, undefined, /it has a field of its own/],
      ...['Host', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Expect', 'Content-Type']
        .concat('Idempotency-Key', 'CDN-Loop', 'Proxy-Authorization', 'X-Gatehouse-Replay')
        .map((name): Refusal => [header(name), 422, undefined, /is set by Gatehouse itself/]),
      [put({ headers: many }), 422, undefined, /20 at most/],
      [
        put({ headers: { 'Webhook-Id': 'v' }, sign_with: { secret: own } }),
        ...([422, undefined, /^headers must not have webhook-id/] as const),
      ],
      [
        form({ sign_with: 'gitlab' }),
        422,
        undefined,
        /^sign_with must be a scheme by which we can sign/,
      ],
      [form({ sign_with: 'standard', sign_secret: 'x' }), 422],
      [form({ headers: 'no colon' }), 422, undefined, /^headers must be/],
    ]
    await refuseAll(t, { service: 'hooks', base, state }, rows)
    await refuseCommands(t, { env, state }, [
      [['destination', 'set', 'erp', '--sign-secret', 'whsec_x'], 2, /a secret is no argument/],
      [['destination', 'set', 'erp', '--authorization', 'Bearer x'], 2, /a secret is no argument/],
      [['destination', 'set', 'erp', '--sign-with', 'gitlab'], 2, /--sign-with must be/],
      [['destination', 'set', 'erp', '--sign-with', 'standard'], 1, /sign_with is missing/],
      [['destination', 'set', 'erp', '--without', 'url'], 2, /--without must be/],
    ])
  })
})
