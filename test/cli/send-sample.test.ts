import { randomBytes } from 'node:crypto'
import { verify } from '@octokit/webhooks-methods'
import Stripe from 'stripe'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { refuseCommands, runCli } from '../helpers/cli.ts'
import type { RefusedCommand } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import type { Env } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import {
  SECRETS,
  SIGNED_ENV,
  addProvider,
  eventIds,
  post,
  postForm,
  shown,
  startHooks,
} from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

/** The configuration by which the command finds the server: its address and its secrets. */
function beside(base: string, extra: Env = {}): Env {
  return { ...SIGNED_ENV, HOOKS_ADDR: new URL(base).host, ...extra }
}

t.test('a sample to the running server', async (t) => {
  const key = { GATEHOUSE_SECRET_KEY: keepSecret('box', randomBytes(32).toString('base64')) }
  const { base, server, env: own } = await startHooks(t, postgres, key)
  const env = beside(base)

  const types = { code_host: 'push', payments: 'payment_intent.succeeded', chat: 'app_mention' }
  for (const [provider, type] of Object.entries(types)) {
    await t.test(`${provider} is accepted as signed, each time as a new delivery`, async (t) => {
      const before = (await eventIds(base)).length
      const first = await runCli(['send-sample', provider], { env })
      const second = await runCli(['send-sample', provider], { env })
      const ids = await eventIds(base)
      t.equal(ids.length, before + 2)
      for (const [run, id] of [
        [second, ids[0]],
        [first, ids[1]],
      ] as const) {
        t.match(run, {
          code: 0,
          stdout: new RegExp(`^202 \\{"id":${id},"provider":"${provider}"`),
        })
        t.match(run.stderr, `sending ${type} to ${base}/webhooks/${provider}\n`)
        t.match(run.stderr, `see ${base}/log/${id}\n`)
      }
      const { facts } = await shown(base, ids[0] ?? 0)
      t.match(facts, { 'Event type': type, Verified: 'yes', Provider: provider })
    })
  }

  await t.test('a generic provider takes it with its token from standard input', async (t) => {
    const token = await addProvider(base, 'ci')
    const args = ['send-sample', 'ci', '--token-stdin']
    const run = await runCli(args, { env, input: `${token}\n` })
    t.match(run, {
      code: 0,
      stdout: /^202 \{"id":\d+,"provider":"generic:ci","trust_mode":"token"/,
    })
    const [id = 0] = await eventIds(base)
    t.match((await shown(base, id)).facts, { 'Event type': 'sample.sent' })
    await addProvider(base, 'lan', { open: true })
    t.match(await runCli(['send-sample', 'generic:lan'], { env }), { code: 0, stdout: /^202 / })
  })

  await t.test('a generic provider that signs verifies it by its secret', async (t) => {
    const add = ['provider', 'add', 'shop', '--signed', '--enable']
    const { stdout } = await runCli(add, { env: own, secretShown: true })
    const input = keepSecret('shop', stdout.trim())
    const known = async () => (await post(base, 'generic/shop', '')).status !== 404
    await until(known, 'the server to know the provider')
    const run = await runCli(['send-sample', 'shop', '--token-stdin'], { env, input })
    const ack = /^202 \{"id":\d+,"provider":"generic:shop","trust_mode":"signed","verified":true/
    t.match(run, { code: 0, stdout: ack })
    const other = `whsec_${randomBytes(32).toString('base64')}`
    const refused = await runCli(['send-sample', 'shop', '--token-stdin'], { env, input: other })
    t.match(refused, { code: 1, stderr: /refused with 403/ })
  })

  await t.test('a built-in provider whose secret was set on the page', async (t) => {
    const { base: bare } = await startHooks(t, postgres, {
      ...{ ...key, HOOKS_CODE_HOST_SECRET: '', HOOKS_PAYMENTS_SECRET: '', HOOKS_CHAT_SECRET: '' },
    })
    const without = { HOOKS_ADDR: new URL(bare).host }
    for (const provider of Object.keys(types)) {
      const input = secret(`page-${provider}`)
      const set = await postForm(bare, `/providers/${provider}/rotate`, { secret: input })
      t.equal(set.status, 200)
      const known = async () => (await post(bare, provider, '')).status !== 404
      await until(known, 'the server to know the secret')
      const run = await runCli(['send-sample', provider, '--token-stdin'], { env: without, input })
      t.match(run, { code: 0, stdout: new RegExp(`^202 .*"${provider}".*"verified":true`) })
    }
  })

  await t.test('each refusal says what to do, and nothing is stored', async (t) => {
    await addProvider(base, 'off', { open: true, enabled: false })
    const bare = await startHooks(t, postgres, { HOOKS_PAYMENTS_SECRET: '' })
    const sample = (provider: string, extra: Env = {}) => ({
      args: ['send-sample', provider],
      env: extra,
    })
    const withToken = (input: string) => ({ args: ['send-sample', 'ci', '--token-stdin'], input })
    const stored = async () => [await eventIds(base), await eventIds(bare.base)]
    await refuseCommands(t, { env, state: stored }, [
      [
        sample('code_host', { HOOKS_CODE_HOST_SECRET: secret('another') }),
        1,
        /^sending push to /,
        /^gatehouse: refused with 401: The signature /,
        /^give this command the server's HOOKS_CODE_HOST_SECRET; .* set on the page .*--token-stdin$/,
      ],
      [
        sample('payments', { HOOKS_ADDR: new URL(bare.base).host }),
        1,
        /^sending /,
        /^gatehouse: refused with 404: /,
        /^set its secret on the page of providers, or start with HOOKS_PAYMENTS_SECRET$/,
      ],
      [
        sample('ci'),
        1,
        /^sending /,
        /^gatehouse: refused with 403: The token is missing/,
        /send-sample ci --token-stdin$/,
      ],
      [withToken('wrong'), 1, /^sending /, /^gatehouse: refused with 403/, /./],
      [withToken(''), 1, 'standard input holds no token'],
      [
        sample('off'),
        1,
        /^sending /,
        /^gatehouse: refused with 403: .*disabled/,
        /^enable it with: gatehouse provider enable off/,
      ],
      [
        sample('nobody'),
        1,
        /^sending /,
        /^gatehouse: refused with 404: /,
        /^make it with: gatehouse provider add nobody --enable$/,
      ],
      [
        sample('chat', { HOOKS_CHAT_SECRET: '' }),
        1,
        'HOOKS_CHAT_SECRET is not set; a secret that was set on the page goes to standard input, ' +
          'with --token-stdin',
      ],
      ...['127.0.0.1:0', 'unix:/tmp/none.sock', 'fd:hooks'].map((address): RefusedCommand => [
        sample('chat', { HOOKS_ADDR: address }),
        1,
        /^gatehouse: HOOKS_ADDR names no TCP port; .*--to or in HOOKS_BASE_URL/,
      ]),
    ])
  })

  await t.test('a server that does not run', async (t) => {
    t.match(await request(`${base}/healthz`), { status: 200 })
    await server.stop()
    t.match(await runCli(['send-sample', 'code_host'], { env }), {
      code: 1,
      stdout: '',
      stderr: /no answer: .*ECONNREFUSED.*\nstart the server with: gatehouse serve/,
    })
  })
})

t.test('a sample to somebody else', async (t) => {
  const receiver = await startReceiver(t, ({ path }, response) => {
    if (path === '/no') response.writeHead(418).end('I am a\u001b[31m teapot')
    else response.writeHead(200).end('thanks\n')
  })
  const to = ['--to', `${receiver.url}/hook`]

  await t.test("the senders' own libraries accept the signatures", async (t) => {
    for (const provider of ['code_host', 'payments', 'chat']) {
      const run = await runCli(['send-sample', provider, ...to], { env: SIGNED_ENV })
      t.match(run, { code: 0, stdout: '200 thanks\n' }, provider)
      t.notMatch(run.stderr, '/log/', 'a stranger has no page to look at')
    }
    const [code, payment, chat] = receiver.received
    const body = (code?.body ?? '').toString()
    t.ok(await verify(SECRETS.code_host, body, String(code?.headers['x-hub-signature-256'])))
    t.equal(code?.headers['x-github-event'], 'push')
    const signature = String(payment?.headers['stripe-signature'])
    const text = (payment?.body ?? '').toString()
    const event = Stripe.webhooks.constructEvent(text, signature, SECRETS.payments)
    t.equal(event.type, 'payment_intent.succeeded')
    t.match(chat?.headers, { 'x-slack-signature': /^v0=/, 'x-slack-request-timestamp': /^\d+$/ })
  })

  await t.test('its refusal is shown without its control characters', async (t) => {
    const run = await runCli(['send-sample', 'chat', '--to', `${receiver.url}/no`], {
      env: SIGNED_ENV,
    })
    t.match(run, { code: 1, stdout: '' })
    t.match(run.stderr, 'gatehouse: refused with 418: I am a[31m teapot\n')
  })

  await t.test(
    'the public address of the server counts before the one it listens on',
    async (t) => {
      const env = { ...SIGNED_ENV, HOOKS_BASE_URL: receiver.url }
      t.match(await runCli(['send-sample', 'chat'], { env }), { code: 0 })
      t.equal(receiver.received.at(-1)?.path, '/webhooks/chat')
    },
  )
})

t.test('wrong usage sends nothing', async (t) => {
  const receiver = await startReceiver(t)
  const env = { ...SIGNED_ENV, HOOKS_ADDR: `127.0.0.1:${receiver.port}` }
  const sample = (...args: readonly string[]) => ['send-sample', ...args]
  const to = /--to must be an http:\/\/ or https:\/\/ URL without credentials/
  await refuseCommands(t, { env, state: async () => receiver.connections() }, [
    [sample(), 2, /Missing PROVIDER/],
    [sample('chat', 'more'), 2, 'Too many arguments'],
    [sample('No Name'), 2, /PROVIDER must be the name of a provider/],
    [sample('chat', '--token-stdin', '--scheme', 'hmac'), 2, /chat has a scheme of its own/],
    [sample('chat', '--to', 'ftp://a'), 2, to],
    [sample('chat', '--to', 'http://u:pw@a/'), 2, /^(?!.*pw).*--to must be/],
    [sample('chat', '--to'), 2, /--to/],
    [sample('chat', '--token', 'x'), 2, /--token/],
  ])
})
