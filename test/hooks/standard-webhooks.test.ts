import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { createSecretBox } from '../../kernel/secret-box.ts'
import { mayDeliver, rememberKeys } from '../../services/hooks/schemes/secrets.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { secret } from '../helpers/secrets.ts'
import {
  addSigned,
  cardOf,
  change,
  secretKey,
  sendStandard,
  signingSecret,
  standardHeaders,
} from '../helpers/senders.ts'
import { startServer } from '../helpers/server.ts'
import {
  FORM_TYPE,
  enable,
  eventIds,
  now,
  payloadOf,
  post,
  postForm,
  refusals,
  shown,
  startHooks,
  type Ack,
} from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const LIMIT = 4_096

await onPostgres(t, 'a generic sender that signs', async (t: Test, backend) => {
  const key = secretKey()
  const { base, server, env } = await startHooks(t, backend, {
    GATEHOUSE_SECRET_KEY: key,
    HOOKS_MAX_BODY: String(LIMIT),
  })
  const signing = await addSigned(base, 'shop')
  const idle = await addSigned(base, 'idle', { enabled: false })

  await t.test('a signed delivery is stored as verified', async (t) => {
    const sent = await sendStandard(base, 'shop', signing, '{"paid":true}', { id: 'msg_first' })
    t.equal(sent.status, 202)
    const ack = sent.json<Ack>()
    t.match(ack, { provider: 'generic:shop', trust_mode: 'signed', verified: true })
    const { facts, headers } = await shown(base, ack.id)
    t.match(facts, {
      'Trust mode': 'signed',
      Verified: 'yes',
      Verification: 'hmac-sha256 ok',
      'Delivery id': 'msg_first',
    })
    t.equal(headers['webhook-signature'], '«redacted»')
    const again = await sendStandard(base, 'shop', signing, '{"paid":true}', { id: 'msg_first' })
    t.same(again.json(), ack, 'a repeat, signed anew, is the same event')
    const bytes = Buffer.from([0xff, 0xfe, 0, 0x0a, 0x7b])
    const raw = await sendStandard(base, 'shop', signing, bytes)
    t.equal(raw.status, 202, 'whatever the bytes are')
    t.ok((await payloadOf(base, raw.json<Ack>().id)).equals(bytes))
  })

  await t.test('a failing signature is 403, and the reason is kept', async (t) => {
    const before = await eventIds(base)
    const body = '{"a":1}'
    const good = standardHeaders(signing, body)
    const { 'webhook-signature': signature = '', ...unsigned } = good
    const cases: readonly (readonly [
      string,
      Readonly<Record<string, string | string[]>>,
      string,
    ])[] = [
      ['signature missing', unsigned, body],
      ['wrong secret or altered body', standardHeaders(idle, body), body],
      ['wrong secret or altered body', good, '{"a":2}'],
      ['wrong secret or altered body', { ...good, 'webhook-id': 'msg_other' }, body],
      ['signature malformed', { ...good, 'webhook-signature': [signature, signature] }, body],
      ['signature malformed', { ...good, 'webhook-signature': 'sha256=00' }, body],
      ['stale by 60 s', standardHeaders(signing, body, { at: now() - 360 }), body],
      ['ahead of the window', standardHeaders(signing, body, { at: now() + 400 }), body],
      ['signature missing', { Authorization: `Bearer ${signing}` }, body],
      ['signature missing', { 'X-Webhook-Token': signing }, body],
    ]
    for (const [reason, headers, sent] of cases) {
      const answer = await post(base, 'generic/shop', sent, headers)
      t.equal(answer.status, 403, reason)
      t.match(answer.json(), { title: 'Forbidden', detail: /signature is missing, malformed/ })
      t.notMatch(answer.text, signature)
    }
    const query = `generic/shop?token=${encodeURIComponent(signing)}`
    t.equal((await post(base, query, body)).status, 403, 'it is no token')
    const listed = await until(async () => {
      const found = await refusals(base, '&provider=generic:shop')
      return found.length === cases.length + 1 && found.toReversed()
    }, 'the refusals to be listed')
    for (const [at, [reason]] of cases.entries()) {
      t.ok(
        listed[at]?.reason.includes(reason.replace('60 s', '')),
        `${reason}: ${listed[at]?.reason}`,
      )
    }
    t.same(await eventIds(base), before, 'nothing was stored')
  })

  await t.test('disabled comes before the length, and that before the signature', async (t) => {
    const long = 'x'.repeat(LIMIT + 1)
    t.equal((await sendStandard(base, 'nobody', signing)).status, 404)
    t.match((await sendStandard(base, 'idle', idle, long)).json(), {
      status: 403,
      detail: /disabled/,
    })
    t.equal((await post(base, 'generic/shop', long)).status, 413)
    await enable(base, 'generic:idle', true)
    t.equal((await sendStandard(base, 'idle', idle)).status, 202)
  })

  await t.test('a secret that the sender made is taken, and shown no more', async (t: Test) => {
    const theirs = signingSecret(24)
    const page = await postForm(base, '/providers', {
      name: 'theirs',
      trust_mode: 'signed',
      secret: ` ${theirs} `,
    })
    t.equal(page.status, 200)
    t.notMatch(page.text, theirs)
    await enable(base, 'generic:theirs', true)
    t.equal((await sendStandard(base, 'theirs', theirs)).status, 202)
    const byCli = signingSecret()
    const args = ['provider', 'add', 'piped', '--signed', '--secret', '-', '--enable']
    const added = await runCli(args, { env, input: `${byCli}\n` })
    t.match(added, { code: 0, stdout: '', stderr: 'generic:piped created, enabled\n' })
    await until(
      async () => (await sendStandard(base, 'piped', byCli)).status === 202,
      'the sender to be known',
    )
    const bad = ['x', 'whsec_', signingSecret(23), signingSecret(65), secret('no-base64')]
    const create = (given: string) => ({
      call: 'POST /providers',
      headers: FORM_TYPE,
      body: new URLSearchParams({ name: 'bad', trust_mode: 'signed', secret: given }).toString(),
    })
    // The secrets are registered: the run fails when an answer repeats one.
    const text = 'The secret must be "whsec_" and then 24 to 64 bytes as base64.'
    const state = async () => (await request(`${base}/providers`)).text.includes('generic:bad')
    await refuseAll(
      t,
      { service: 'hooks', base, state },
      bad.map((given): Refusal => [create(given), 422, undefined, text]),
    )
    t.equal((await sendStandard(base, 'bad', theirs)).status, 404, 'nothing was made')
  })

  await t.test('a text that is no signing secret is none', async (t) => {
    const damaged = await addSigned(base, 'damaged')
    t.equal((await sendStandard(base, 'damaged', damaged)).status, 202)
    const sealed = createSecretBox(Buffer.from(key, 'base64'), randomBytes)
    await backend.query(
      env,
      `update hooks.providers set signing_secret = $1 where name = 'generic:damaged'`,
      [sealed.seal('too short', 'generic:damaged')],
    )
    // Any change of a provider has them all read again.
    await postForm(base, '/providers', { name: 'other', trust_mode: 'token' })
    t.equal((await sendStandard(base, 'damaged', damaged)).status, 403)
    t.match(await cardOf(base, 'generic:damaged'), { Secret: 'missing', switch: 'off' })
  })

  await t.test(
    'the database holds it encrypted; with another key the sender is disabled',
    async (t) => {
      await server.stop()
      const rows = await backend.query(env, 'select p::text as text from hooks.providers p')
      const text = rows.map((row) => row['text']).join('\n')
      for (const form of ['utf8', 'base64', 'hex'] as const) {
        const raw = Buffer.from(signing.slice('whsec_'.length), 'base64')
        t.notOk(text.includes(raw.toString(form)), `the bytes as ${form}`)
        t.notOk(text.includes(Buffer.from(signing).toString(form)), `the text as ${form}`)
      }

      for (const [other, problem] of [
        [secretKey(), 'sealed with another key'],
        ['', 'GATEHOUSE_SECRET_KEY is not set'],
      ] as const) {
        const wrong = { ...env, GATEHOUSE_SECRET_KEY: other }
        const without = await startServer(t, { services: ['hooks'], env: wrong })
        const refused = await sendStandard(without.hooks, 'shop', signing)
        t.match(refused.json(), { status: 403, detail: /disabled/ }, problem)
        const said = without.logs().filter((line) => line.includes('signing secret not readable'))
        t.equal(said.filter((line) => line.includes('generic:shop')).length, 1, 'said once')
        t.match(said.join('\n'), problem)
        t.match(said.join('\n'), /set GATEHOUSE_SECRET_KEY to the key/)
        t.match(await cardOf(without.hooks, 'generic:shop'), { Secret: 'missing', switch: 'off' })
        await without.stop()
      }

      const again = await startServer(t, { services: ['hooks'], env })
      t.equal((await sendStandard(again.hooks, 'shop', signing)).status, 202, 'with its key again')
      t.match(await cardOf(again.hooks, 'generic:shop'), { Secret: 'configured', switch: 'on' })
      await again.stop()

      // One row's secret put into another row.
      await backend.query(
        env,
        `update hooks.providers set signing_secret =
         (select signing_secret from hooks.providers where name = 'generic:shop')
        where name = 'generic:idle'`,
      )
      const swapped = await startServer(t, { services: ['hooks'], env })
      t.equal((await sendStandard(swapped.hooks, 'idle', signing)).status, 403)
      t.match(await cardOf(swapped.hooks, 'generic:idle'), { Secret: 'missing' })
      const list = await runCli(['provider', 'list', '--json'], { env })
      t.match(
        JSON.parse(list.stdout).find((one: { name: string }) => one.name === 'generic:idle'),
        { trust_mode: 'signed', enabled: false, secret_status: 'missing' },
      )
      const rotated = await change(swapped.hooks, 'generic:idle', 'rotate', {
        secret: signingSecret(),
      })
      t.equal(rotated.status, 200, 'rotating makes it readable')
      t.match(await cardOf(swapped.hooks, 'generic:idle'), { Secret: 'configured', switch: 'on' })
    },
  )
})

t.test('without GATEHOUSE_SECRET_KEY no such sender can be made', async (t: Test) => {
  const { base, env } = await startHooks(t, postgres)
  const refused = await postForm(base, '/providers', { name: 'shop', trust_mode: 'signed' })
  t.equal(refused.status, 422)
  t.match(refused.json(), { detail: /set GATEHOUSE_SECRET_KEY, as openssl rand -base64 32/ })
  const cli = await runCli(['provider', 'add', 'shop', '--signed'], { env })
  t.match(cli, { code: 1, stdout: '', stderr: /^gatehouse: .*set GATEHOUSE_SECRET_KEY/ })
  t.equal((await post(base, 'generic/shop', '{}')).status, 404)
  const bad = secret('secret-key')
  const start = await runCli(['migrate'], { env: { ...env, GATEHOUSE_SECRET_KEY: bad } })
  t.match(start, { code: 1, stderr: /GATEHOUSE_SECRET_KEY is not valid .* 32 bytes as base64/ })
  t.notMatch(start.stderr, bad)
})

// Whether a secret is there decides what is shown and what may deliver: both at once, and alike.

t.test('a key that changes counts for the card and for the receiver at once', async (t: Test) => {
  const file = join(await temporaryFolder(t), 'gatehouse.env')
  const [right, wrong] = [secretKey(), secretKey()]
  await writeFile(file, `GATEHOUSE_SECRET_KEY=${right}\n`)
  const env = await postgres.env(t)
  const server = await startServer(t, {
    services: ['hooks'],
    env: { ...env, GATEHOUSE_ENV_FILE: file },
  })
  const base = server.hooks
  const signing = await addSigned(base, 'shop')
  t.equal((await sendStandard(base, 'shop', signing)).status, 202)

  let read = 0
  for (const [key, secret, status] of [
    [wrong, 'missing', 403],
    [right, 'configured', 202],
  ] as const) {
    await writeFile(file, `GATEHOUSE_SECRET_KEY=${key}\n`)
    read++
    const lines = (): number => server.logs().filter((line) => line.includes('re-read')).length
    await until(() => lines() === read, 'the file to be read')
    t.equal((await sendStandard(base, 'shop', signing)).status, status)
    t.match(await cardOf(base, 'generic:shop'), { Secret: secret })
  }
})

t.test('a stored secret is decrypted once, however often its row is read', async (t: Test) => {
  const name = 'generic:counted'
  const real = createSecretBox(randomBytes(32), randomBytes)
  const text = signingSecret()
  let opened = 0
  const counting = {
    seal: real.seal,
    open(bytes: Buffer, of: string) {
      opened++
      return real.open(bytes, of)
    },
  }
  const box = () => counting
  const secrets = { of: () => undefined, box, keyIn: rememberKeys(box) }
  const trust = { trust_mode: 'signed', scheme: 'standard' } as const
  const row = { name, ...trust, token_hash: null, enabled: true }
  const mayDeliverWith = (sealed: Buffer): boolean =>
    mayDeliver({ ...row, signing_secret: Buffer.from(sealed) }, secrets)
  const sealed = real.seal(text, name)
  for (let n = 0; n < 3; n++) t.ok(mayDeliverWith(sealed))
  t.equal(opened, 1)
  t.notOk(mayDeliverWith(real.seal('too short', name)), 'another secret is looked at')
  t.ok(mayDeliverWith(real.seal(text, name)))
  t.equal(opened, 3)
})
