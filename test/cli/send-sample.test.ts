import { randomBytes } from 'node:crypto'
import { verify } from '@octokit/webhooks-methods'
import Stripe from 'stripe'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import type { Env } from '../helpers/program.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import {
  addProvider,
  eventIds,
  SECRETS,
  shown,
  SIGNED_ENV,
  startHooks,
} from '../helpers/signing-setup.ts'

const [embedded] = backends

/** The configuration by which the command finds the server: its address and its secrets. */
function beside(base: string, extra: Env = {}): Env {
  return { ...SIGNED_ENV, HOOKS_ADDR: new URL(base).host, ...extra }
}

t.test('a sample to the running server', async (t) => {
  const key = { GATEHOUSE_SECRET_KEY: keepSecret('box', randomBytes(32).toString('base64')) }
  const { base, server, env: own } = await startHooks(t, embedded, key)
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
        t.match(run, { code: 0, stdout: new RegExp(`^202 \\{"id":${id},"provider":"${provider}"`) })
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
    const run = await runCli(['send-sample', 'shop', '--token-stdin'], { env, input })
    const ack = /^202 \{"id":\d+,"provider":"generic:shop","trust_mode":"signed","verified":true/
    t.match(run, { code: 0, stdout: ack })
    const other = `whsec_${randomBytes(32).toString('base64')}`
    const refused = await runCli(['send-sample', 'shop', '--token-stdin'], { env, input: other })
    t.match(refused, { code: 1, stderr: /refused with 403/ })
  })

  await t.test('each refusal says what to do, and nothing is stored', async (t) => {
    const before = await eventIds(base)
    const other = beside(base, { HOOKS_CODE_HOST_SECRET: secret('another') })
    t.match(await runCli(['send-sample', 'code_host'], { env: other }), {
      code: 1,
      stdout: '',
      stderr:
        /refused with 401: The signature .*\nstart the server and this command with the same HOOKS_CODE_HOST_SECRET\n$/,
    })
    t.match(await runCli(['send-sample', 'ci'], { env }), {
      code: 1,
      stderr: /refused with 403: The token is missing.*\n.*send-sample ci --token-stdin\n$/,
    })
    t.match(await runCli(['send-sample', 'ci', '--token-stdin'], { env, input: 'wrong' }), {
      code: 1,
      stderr: /refused with 403/,
    })
    t.match(await runCli(['send-sample', 'ci', '--token-stdin'], { env }), {
      code: 1,
      stderr: 'gatehouse: standard input holds no token\n',
    })
    await addProvider(base, 'off', { open: true, enabled: false })
    t.match(await runCli(['send-sample', 'off'], { env }), {
      code: 1,
      stderr: /refused with 403: .*disabled.*\nenable it with: gatehouse provider enable off/,
    })
    t.match(await runCli(['send-sample', 'nobody'], { env }), {
      code: 1,
      stderr: /refused with 404: .*\nmake it with: gatehouse provider add nobody --enable\n$/,
    })
    t.match(await runCli(['send-sample', 'chat'], { env: { HOOKS_ADDR: new URL(base).host } }), {
      code: 1,
      stderr: "gatehouse: HOOKS_CHAT_SECRET is not set; give this command the server's secret\n",
    })
    t.same(await eventIds(base), before)
  })

  await t.test('a server without the secret says so', async (t) => {
    const bare = await startHooks(t, embedded, { HOOKS_PAYMENTS_SECRET: '' })
    const run = await runCli(['send-sample', 'payments'], { env: beside(bare.base) })
    t.match(run, {
      code: 1,
      stderr: /refused with 404: .*\nstart the server with HOOKS_PAYMENTS_SECRET set\n$/,
    })
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
      for (const address of ['127.0.0.1:0', 'unix:/tmp/none.sock', 'fd:hooks']) {
        const run = await runCli(['send-sample', 'chat'], {
          env: { ...SIGNED_ENV, HOOKS_ADDR: address },
        })
        t.match(run, {
          code: 1,
          stderr: /HOOKS_ADDR names no TCP port; .*--to or in HOOKS_BASE_URL/,
        })
      }
    },
  )
})

t.test('wrong usage sends nothing', async (t) => {
  const receiver = await startReceiver(t)
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /Missing PROVIDER/],
    [['chat', 'more'], /Too many arguments/],
    [['No Name'], /"No Name" is no provider's name/],
    [['chat', '--token-stdin'], /chat is signed: it takes no token/],
    [['chat', '--to', 'ftp://a'], /--to takes an http:\/\/ or https:\/\/ URL without credentials/],
    [['chat', '--to', 'http://u:pw@a/'], /--to takes/],
    [['chat', '--to'], /--to/],
    [['chat', '--token', 'x'], /--token/],
  ]
  const env = { ...SIGNED_ENV, HOOKS_ADDR: `127.0.0.1:${receiver.port}` }
  for (const [args, message] of wrong) {
    const { code, stdout, stderr } = await runCli(['send-sample', ...args], { env })
    t.match({ code, stdout, stderr }, { code: 2, stdout: '', stderr: message }, args.join(' '))
    t.notMatch(stderr, 'pw')
  }
  t.equal(receiver.connections(), 0)
})
