import { verify } from '@octokit/webhooks-methods'
import Stripe from 'stripe'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { runOk, refuseCommands, runCli, type RefusedCommand } from '../helpers/cli.ts'
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
import type { Env } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'
import { until } from '../helpers/until.ts'

const key = { GATEHOUSE_SECRET_KEY: secretKey() }
const { base, server, env: own } = await startHooks(t, postgres, key)
/** A server whose built-in providers have no secret of the configuration. */
const none = { HOOKS_CODE_HOST_SECRET: '', HOOKS_PAYMENTS_SECRET: '', HOOKS_CHAT_SECRET: '' }
const bare = await startHooks(t, postgres, { ...key, ...none })
/** By these the command finds the server: its address and its secrets. */
const env = { ...SIGNED_ENV, HOOKS_ADDR: new URL(base).host }
const elsewhere = { HOOKS_ADDR: new URL(bare.base).host }
const TYPES = { code_host: 'push', payments: 'payment_intent.succeeded', chat: 'app_mention' }

await t.test('a built-in provider takes it as signed, each time as a new delivery', async (t) => {
  for (const [provider, type] of Object.entries(TYPES)) {
    const before = (await eventIds(base)).length
    for (const count of [1, 2]) {
      const run = await runCli(`send-sample ${provider}`, { env })
      const [id, ...others] = await eventIds(base)
      t.equal(others.length + 1, before + count)
      t.match(run, { code: 0, stdout: `202 {"id":${id},"provider":"${provider}"` })
      t.match(run.stderr, `sending ${type} to ${base}/webhooks/${provider}\n`)
      t.match(run.stderr, `see ${base}/log/${id}\n`)
    }
    const [id = 0] = await eventIds(base)
    const { facts } = await shown(base, id)
    t.match(facts, { 'Event type': type, Verified: 'yes', Provider: provider })
    // Its secret may have been set on the page.
    const input = secret(`page-${provider}`)
    await postForm(bare.base, `/providers/${provider}/rotate`, { secret: input })
    const known = async () => (await post(bare.base, provider, '')).status !== 404
    await until(known, 'the server to know the secret')
    const run = await runCli(`send-sample ${provider} --token-stdin`, { env: elsewhere, input })
    t.match(run, { code: 0, stdout: '"verified":true' })
  }
})

await t.test('a generic provider takes it with its token or its secret', async (t) => {
  const withToken = (name: string, input: string) =>
    runCli(`send-sample ${name} --token-stdin`, { env, input })
  const taken = await withToken('ci', `${await addProvider(base, 'ci')}\n`)
  t.match(taken, { code: 0, stdout: '"provider":"generic:ci","trust_mode":"token"' })
  const [id = 0] = await eventIds(base)
  t.match((await shown(base, id)).facts, { 'Event type': 'sample.sent' })
  await addProvider(base, 'lan', { open: true })
  t.match(await runCli('send-sample generic:lan', { env }), { code: 0, stdout: /^202 / })

  const add = 'provider add shop --signed --enable'
  const { stdout } = await runCli(add, { env: own, secretShown: true })
  const signing = keepSecret('shop', stdout.trim())
  const known = async () => (await post(base, 'generic/shop', '')).status !== 404
  await until(known, 'the server to know the provider')
  const ack = '"provider":"generic:shop","trust_mode":"signed","verified":true'
  t.match(await withToken('shop', signing), { code: 0, stdout: ack })
  const other = `whsec_${secretKey()}`
  t.match(await withToken('shop', other), { code: 1, stderr: 'refused with 403' })
})

await t.test('each refusal says what to do, and nothing is stored', async (t) => {
  await addProvider(base, 'off', { open: true, enabled: false })
  const fresh = await startHooks(t, postgres, { HOOKS_PAYMENTS_SECRET: '' })
  const sample = (words: string, env: Env = {}) => ({ args: `send-sample ${words}`, env })
  const stored = async () => [await eventIds(base), await eventIds(fresh.base)]
  const to = '--to must be an http:// or https:// URL without credentials'
  await refuseCommands(t, { env, state: stored }, [
    [
      sample('code_host', { HOOKS_CODE_HOST_SECRET: secret('another') }),
      1,
      /^sending push to /,
      /^gatehouse: refused with 401: The signature /,
      /^give this command the server's HOOKS_CODE_HOST_SECRET; .*--token-stdin$/,
    ],
    [
      sample('payments', { HOOKS_ADDR: new URL(fresh.base).host }),
      1,
      /^sending /,
      /^gatehouse: refused with 404: /,
      /start with HOOKS_PAYMENTS_SECRET$/,
    ],
    [
      sample('ci'),
      1,
      /^sending /,
      /^gatehouse: refused with 403: The token is missing/,
      /send-sample ci --token-stdin$/,
    ],
    [sample('ci --token-stdin'), 1, 'standard input holds no token'],
    [
      sample('off'),
      1,
      /^sending /,
      /^gatehouse: refused with 403: .*disabled/,
      /gatehouse provider enable off/,
    ],
    [
      sample('nobody'),
      1,
      /^sending /,
      /^gatehouse: refused with 404: /,
      /gatehouse provider add nobody --enable$/,
    ],
    [
      sample('chat', { HOOKS_CHAT_SECRET: '' }),
      1,
      'HOOKS_CHAT_SECRET is not set; a secret that was set on the page goes to standard input, ' +
        'with --token-stdin',
    ],
    ...['127.0.0.1:0', 'unix:/tmp/none.sock'].map((address): RefusedCommand => [
      sample('chat', { HOOKS_ADDR: address }),
      1,
      'HOOKS_ADDR names no TCP port; give the URL of the receiver by --to or in HOOKS_BASE_URL',
    ]),
    ['send-sample No_Name', 2, 'PROVIDER must be the name of a provider'],
    [sample('chat --token-stdin --scheme hmac'), 2, 'chat has a scheme of its own'],
    [sample('chat --to ftp://a'), 2, to],
    [sample('chat --to http://u:pw@a/'), 2, /^(?!.*pw).*--to must be/],
  ])
})

await t.test('a sample to somebody else, which its own libraries accept', async (t) => {
  const receiver = await startReceiver(t, ({ path }, response) => {
    if (path === '/no') response.writeHead(418).end('I am a\u001b[31m teapot')
    else response.writeHead(200).end('thanks\n')
  })
  const to = (words: string) => runCli(`send-sample ${words}`, { env: SIGNED_ENV })
  for (const provider of Object.keys(TYPES)) {
    const run = await to(`${provider} --to ${receiver.url}/hook`)
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

  const refused = await to(`chat --to ${receiver.url}/no`)
  const said = 'gatehouse: refused with 418: I am a[31m teapot\n'
  t.match(refused, { code: 1, stdout: '', stderr: said }, 'without its control characters')
  // The public address of the server counts before the one it listens on.
  const known = { ...SIGNED_ENV, HOOKS_BASE_URL: receiver.url }
  await runOk('send-sample chat', { env: known })
  t.equal(receiver.received.at(-1)?.path, '/webhooks/chat')
})

await t.test('a server that does not run', async (t) => {
  await server.stop()
  t.match(await runCli('send-sample code_host', { env }), {
    code: 1,
    stdout: '',
    stderr: /no answer: .*ECONNREFUSED.*\nstart the server with: gatehouse serve/,
  })
})
