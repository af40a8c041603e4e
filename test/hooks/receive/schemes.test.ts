import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { t } from 'tap'
import { postgres } from '../../helpers/backends.ts'
import { refuseCommands, runCli } from '../../helpers/cli.ts'
import { request } from '../../helpers/http.ts'
import {
  enable,
  eventIds,
  formCall,
  hmac,
  plain,
  post,
  postForm,
  refusals,
  shown,
  startHooks,
  type Ack,
  type Fields,
} from '../../helpers/hooks.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { expectStatus, refuseAll, type Refusal } from '../../helpers/refusals.ts'
import { keepSecret, secret } from '../../helpers/secrets.ts'
import {
  addSigned,
  cardOf,
  change,
  secretKey,
  sendStandard,
  signingSecret,
  standardHeaders,
} from '../../helpers/senders.ts'
import { startServer } from '../../helpers/server.ts'
import { until } from '../../helpers/until.ts'

// How a provider of a scheme is made, and how its secret is kept. What each scheme takes and refuses is in
// test/hooks/receive/presets.test.ts.

const { base, env, server } = await startHooks(t, postgres, {
  GATEHOUSE_SECRET_KEY: secretKey(),
})

/** Not at once: the server, which the command calls, is in this process. */
const run = promisify(execFile)

await t.test('Standard Webhooks: what fails is 403, and the reason is kept', async (t) => {
  const key = await addSigned(base, 'shop')
  const sent = await sendStandard(base, 'shop', key, '{"paid":true}', { id: 'msg_first' })
  const ack = sent.json<Ack>()
  t.match(ack, { provider: 'generic:shop', trust_mode: 'signed', verified: true })

  const body = '{"a":1}'
  const good = standardHeaders(key, body)
  const { 'webhook-signature': signature = '', ...unsigned } = good
  const query = `generic/shop?token=${encodeURIComponent(key)}`
  const cases: readonly (readonly [string, Fields, string?])[] = [
    ['signature missing', unsigned],
    ['wrong secret or altered body', { ...good, 'webhook-id': 'msg_other' }],
    ['signature malformed', { ...good, 'webhook-signature': 'sha256=00' }],
    // The secret is no token.
    ['signature missing', { Authorization: `Bearer ${key}` }],
    ['signature missing', {}, query],
  ]
  for (const [reason, headers, to = 'generic/shop'] of cases) {
    const answer = await post(base, to, body, headers)
    t.match(answer.json(), { status: 403, detail: /signature is missing, malformed/ }, reason)
    t.notMatch(answer.text, signature)
  }
  const listed = await until(async () => {
    const found = await refusals(base, '&provider=generic:shop')
    return found.length === cases.length && found.map(({ reason }) => reason).toReversed()
  }, 'the refusals to be listed')
  t.same(
    listed,
    cases.map(([reason]) => reason),
  )
  t.same(await eventIds(base), [ack.id], 'nothing was stored')
})

await t.test('the page makes a provider of a scheme, and shows how to send to it', async (t) => {
  const own = {
    scheme: 'hmac',
    header: 'X-Own-Signature',
    prefix: 'v2=',
    encoding: 'base64url',
    algorithm: 'sha512',
    signed_text: '{id}.{timestamp}.{body}',
    timestamp_header: 'X-Own-Time',
    event_type_json: 'hello',
    id_header: 'X-Own-Id',
  }
  for (const [at, fields] of [{ scheme: 'github' }, { scheme: 'standard' }, own].entries()) {
    const name = `page-${at}`
    const given = { name, trust_mode: 'signed', ...fields }
    const page = await expectStatus(200, postForm(base, '/providers', given))
    const made = /id="made-token"[^>]*><code>([^<]+)</.exec(page.text)?.[1] ?? ''
    keepSecret('made', plain(made))
    t.match(await cardOf(base, `generic:${name}`), { Scheme: fields.scheme, switch: 'off' })
    await enable(base, `generic:${name}`, true)
    const command = /id="made-curl"[^>]*><code>([^<]+)</.exec(page.text)?.[1] ?? ''
    const { stdout } = await run('bash', ['-c', plain(command)])
    t.match(stdout, /^\{"id":\d+,.*"trust_mode":"signed","verified":true/, fields.scheme)
  }
  const [newest = 0] = await eventIds(base)
  t.match((await shown(base, newest)).facts, { 'Event type': 'world' })
})

await t.test('what the page refuses names its field, and nothing is made', async (t) => {
  const signed = { name: 'bad', trust_mode: 'signed' }
  const own = { ...signed, scheme: 'hmac', header: 'X-Own' }
  const noSecret = /^The secret must be "whsec_" and then 24 to 64 bytes as base64\.$/
  const cases: readonly (readonly [Fields, RegExp])[] = [
    [{ ...signed, scheme: 'ebay' }, /^scheme must be the name of a sender, such as github/],
    [
      { ...signed, scheme: 'stripe' },
      /^The sender makes the secret of stripe: give it as the secret/,
    ],
    [{ ...signed, scheme: 'discord', secret: 'x' }, /must be the public key .*64 hex digits/],
    [{ ...signed, scheme: 'github', secret: 'short' }, /must be 8 to 256 characters/],
    // The secrets are registered: the run fails when an answer repeats one.
    [{ ...signed, secret: signingSecret(23) }, noSecret],
    [{ ...signed, scheme: 'hmac' }, /^header is missing/],
    [{ ...own, header: 'X Own' }, /^header must be the name of a header/],
    [{ ...own, header: 'Host' }, /^header must be .*of this sender: every request has host/],
    [{ ...own, id_header: 'Content-Length' }, /^id_header .*every request has content-length/],
    [{ ...signed, scheme: 'standard', id_header: 'X-I' }, /^id_header .*standard signs the id/],
    [{ ...own, algorithm: 'sha1' }, /^algorithm must be .*SHA-1 is refused/],
    [{ ...own, signed_text: '{timestamp}.{body}' }, /^timestamp_header is missing/],
    [{ ...own, timestamp_header: 'X-T' }, /^timestamp_header needs \{timestamp\} in signed_text/],
    [{ ...own, event_type_json: 'a', event_type_header: 'b' }, /exclude each other/],
  ]
  const state = async () => (await request(`${base}/providers`)).text.includes('generic:bad')
  await refuseAll(
    t,
    { service: 'hooks', base, state },
    cases.map(([fields, text]): Refusal => {
      return [formCall('/providers', fields), 422, text]
    }),
  )
  const navigates = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
  const page = await postForm(base, '/providers', { ...own, encoding: 'base32' }, navigates)
  t.match(page.text, 'value="X-Own"', 'what was typed is kept')
  t.match(page.text, /name="scheme" value="hmac"/, 'as is the sender')
})

await t.test('a secret that the sender made is taken, and may come from a file', async (t) => {
  const theirs = signingSecret(24)
  const fields = { name: 'theirs', trust_mode: 'signed', secret: ` ${theirs} ` }
  t.notMatch((await postForm(base, '/providers', fields)).text, theirs, 'it is shown no more')
  await enable(base, 'generic:theirs', true)
  await expectStatus(202, sendStandard(base, 'theirs', theirs))

  const state = async () => (await request(`${base}/providers`)).text.includes('generic:filed')
  const add = (...flags: readonly string[]) => ['provider', 'add', 'filed', ...flags]
  const stdin = { args: add('--scheme', 'github', '--secret', '-') }
  await refuseCommands(t, { env, state }, [
    [
      add('--scheme', 'slack'),
      1,
      /^gatehouse: The sender makes the secret of slack: give it as the secret/,
    ],
    [{ ...stdin, input: '' }, 1, /^gatehouse: The secret must be 8 to 256 characters/],
  ])
  const file = join(await temporaryFolder(t), 'secret')
  const key = secret('filed')
  await writeFile(file, `${key}\n`)
  const added = await runCli(add('--scheme', 'gitea', '--secret', file, '--enable'), { env })
  t.match(added, { code: 0, stdout: '' })
  const headers = { 'X-Gitea-Signature': hmac(key, '{}') }
  const known = async () => (await post(base, 'generic/filed', '{}', headers)).status === 202
  await until(known, 'the provider')
})

await t.test(
  'secrets are stored encrypted; with another key the sender is disabled',
  async (t) => {
    const key = await addSigned(base, 'sealed')
    await addSigned(base, 'swapped')
    const rows = await postgres.query(env, 'select p::text as text from hooks.providers p')
    const text = rows.map((row) => row['text']).join('\n')
    const raw = Buffer.from(key.slice('whsec_'.length), 'base64')
    for (const form of ['base64', 'hex'] as const) {
      t.notOk(text.includes(raw.toString(form)), `the bytes as ${form}`)
      t.notOk(text.includes(Buffer.from(key).toString(form)), `the text as ${form}`)
    }
    await server.stop()
    for (const [other, problem] of [
      [secretKey(), 'sealed with another key'],
      ['', 'GATEHOUSE_SECRET_KEY is not set'],
    ] as const) {
      const wrong = { ...env, GATEHOUSE_SECRET_KEY: other }
      const { hooks, logs, stop } = await startServer(t, { services: ['hooks'], env: wrong })
      const refused = await sendStandard(hooks, 'sealed', key)
      t.match(refused.json(), { status: 403, detail: /disabled/ }, problem)
      const said = logs().filter((line) =>
        /signing secret not readable.*generic:sealed/.test(line),
      )
      t.match(said, [new RegExp(`${problem}.*set GATEHOUSE_SECRET_KEY to the key`)], 'said once')
      t.match(await cardOf(hooks, 'generic:sealed'), { Secret: 'missing', switch: 'off' })
      if (other === '') {
        const made = await postForm(hooks, '/providers', { name: 'none', trust_mode: 'signed' })
        const detail = /set GATEHOUSE_SECRET_KEY, as openssl rand -base64 32/
        t.match(made.json(), { status: 422, detail }, 'without a key none can be made')
      }
      await stop()
    }

    // One row's secret put into another row.
    await postgres.query(
      env,
      `update hooks.providers set signing_secret =
       (select signing_secret from hooks.providers where name = 'generic:sealed')
     where name = 'generic:swapped'`,
    )
    const { hooks } = await startServer(t, { services: ['hooks'], env })
    await expectStatus(202, sendStandard(hooks, 'sealed', key), 'with its key again')
    await expectStatus(403, sendStandard(hooks, 'swapped', key))
    t.match(await cardOf(hooks, 'generic:swapped'), { Secret: 'missing' })
    const fresh = { secret: signingSecret() }
    await expectStatus(200, change(hooks, 'generic:swapped', 'rotate', fresh))
    const readable = { Secret: 'configured', switch: 'on' }
    t.match(await cardOf(hooks, 'generic:swapped'), readable, 'rotating makes it readable')

    const bad = { ...env, GATEHOUSE_SECRET_KEY: secret('secret-key') }
    const start = await runCli(['migrate'], { env: bad })
    t.match(start, { code: 1, stderr: /GATEHOUSE_SECRET_KEY is not valid .* 32 bytes as base64/ })
  },
)
