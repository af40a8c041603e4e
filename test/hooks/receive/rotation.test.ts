import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { postgres } from '../../helpers/backends.ts'
import { runCli } from '../../helpers/cli.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { expectStatus, refuseAll, type Refusal } from '../../helpers/refusals.ts'
import { keepSecret, secret } from '../../helpers/secrets.ts'
import {
  addSigned,
  cardOf,
  change,
  secretIn,
  secretKey,
  sendStandard,
  signingSecret,
} from '../../helpers/senders.ts'
import { startServer } from '../../helpers/server.ts'
import {
  formCall,
  SIGNED,
  addProvider,
  deliver,
  post,
  refusals,
  startHooks,
  tokenOf,
  type Signed,
  type Fields,
} from '../../helpers/hooks.ts'
import { until } from '../../helpers/until.ts'

const OVERLAP_S = 3_600

/** One way to prove who sends: how a provider is made, how it sends, how its secret is replaced. */
type Way = {
  make: (base: string, name: string) => Promise<string>
  send: (base: string, name: string, secret: string) => Promise<number>
  shown: typeof tokenOf
}

const WAYS: Readonly<Record<'signed' | 'token', Way>> = {
  signed: {
    make: addSigned,
    send: async (base, name, key) => (await sendStandard(base, name, key)).status,
    shown: secretIn,
  },
  token: {
    make: addProvider,
    send: async (base, name, token) => {
      const headers = { Authorization: `Bearer ${token}` }
      return (await post(base, `generic/${name}`, '{}', headers)).status
    },
    shown: tokenOf,
  },
}

const MATCHED = 'Matched last'

/** Waits until the card says which secret matched last; it is written down within a second or two. */
async function untilMatched(base: string, name: string, what: RegExp) {
  const says = async () => what.test((await cardOf(base, name))[MATCHED] ?? '')
  await until(says, `${name} to say ${what.source}`, undefined, 200)
}

/** Waits until the newest refusal of a provider has this reason. */
async function untilRefused(base: string, name: string, reason: RegExp) {
  const listed = async () =>
    reason.test((await refusals(base, `&provider=${name}`))[0]?.reason ?? '')
  await until(listed, `a refusal of ${name} for ${reason.source}`, undefined, 200)
}

/** Old and new during the overlap, only the new one after it. `end` brings its end. */
async function overlap(
  t: Test,
  base: string,
  name: string,
  { make, send, shown }: Way,
  end: (provider: string) => Promise<unknown>,
) {
  const old = await make(base, name)
  const provider = `generic:${name}`
  t.equal(await send(base, name, old), 202)
  await untilMatched(base, provider, /^the current one/)

  const lasts = { overlap: String(OVERLAP_S) }
  const page = await expectStatus(200, change(base, provider, 'rotate', lasts))
  const fresh = shown(page)
  t.not(fresh, old)
  const within = []
  for (const one of [old, fresh, old]) within.push(await send(base, name, one))
  t.same(within, [202, 202, 202], 'both are accepted')
  await untilMatched(base, provider, /^the previous one/)

  t.same(await end(provider), [{ lasts_s: OVERLAP_S }])
  await until(async () => (await send(base, name, old)) === 403, 'the overlap to end')
  t.equal(await send(base, name, fresh), 202, 'the new one goes on')
  await untilMatched(base, provider, /^the current one/)
  await untilRefused(base, provider, /^matches a retired (secret$|token, in )/)
}

await t.test('rotation', async (t) => {
  const { base, env } = await startHooks(t, postgres, {
    GATEHOUSE_SECRET_KEY: secretKey(),
    HOOKS_ROTATION_OVERLAP_S: '7200',
  })

  /** Puts the end of a provider's overlap into the past; gives how long it would have been. */
  const end = (provider: string) =>
    postgres.query(
      env,
      `with overlap as (
         select name, extract(epoch from retired_until - rotated_at)::int as lasts_s
           from hooks.providers where name = $1
       ), ended as (
         update hooks.providers p set retired_until = p.rotated_at
           from overlap o where p.name = o.name
       )
       select lasts_s from overlap, pg_notify('hooks_config', '')`,
      [provider],
    )

  await t.test('during an overlap, and after it', async (t) => {
    // These mostly wait, so they wait together.
    const stories = Object.entries(WAYS).map(([kind, way]) => overlap(t, base, kind, way, end))
    await Promise.all(stories)
  })

  await t.test('another rotation ends the overlap before', async (t) => {
    const { make, send, shown } = WAYS.token
    const first = await make(base, 'twice')
    const rotate = (fields = {}) => change(base, 'generic:twice', 'rotate', fields)
    const second = shown(await rotate())
    const ends = (await cardOf(base, 'generic:twice'))['Previous until'] ?? ''
    const left = Date.parse(ends.replace(' UTC', 'Z')) - Date.now()
    t.ok(Math.abs(left - 7_200_000) < 60_000, 'the configured overlap when none is given')
    t.equal(await send(base, 'twice', first), 202)
    const third = shown(await rotate())
    const within = []
    for (const one of [first, second, third]) within.push(await send(base, 'twice', one))
    t.same(within, [403, 202, 202])
    await rotate({ overlap: '0' })
    t.equal(await send(base, 'twice', third), 403, 'an overlap of 0 stops the old one at once')
  })

  await t.test('a signing secret that the provider made replaces ours', async (t) => {
    const send = (key: string) => WAYS.signed.send(base, 'theirs', key)
    await addSigned(base, 'theirs')
    const theirs = signingSecret()
    const page = await change(base, 'generic:theirs', 'rotate', { secret: theirs })
    t.match(page.text, 'generic:theirs has its new secret')
    t.notMatch(page.text, theirs)
    t.equal(await send(theirs), 202)
    const piped = signingSecret(64)
    const args = ['provider', 'rotate', 'theirs', '--secret=-']
    const rotated = await runCli(args, { env, input: piped })
    const configured = /has a new secret; the old one is accepted as well for 2h/
    t.match(rotated, { code: 0, stdout: '', stderr: configured })
    await until(async () => (await send(piped)) === 202, 'the new secret')
    t.equal(await send(theirs), 202)
  })

  await t.test('what is refused', async (t) => {
    const token = await addProvider(base, 'stays')
    const rotate = (name: string, fields: Fields) => formCall(`/providers/${name}/rotate`, fields)
    const overlaps = ['-1', '1h', '', '2592001']
    const state = () => WAYS.token.send(base, 'stays', token)
    const wrong = /overlap must be a whole number of seconds/
    await refuseAll(t, { service: 'hooks', base, state }, [
      ...overlaps.map((overlap): Refusal => {
        return [rotate('generic:stays', { overlap }), 422, wrong]
      }),
      // A token is made here, never given.
      [rotate('generic:stays', { secret: signingSecret() }), 422],
      // The variable wins: a stored one would have no effect.
      [rotate('code_host', {}), 409, /comes from HOOKS_CODE_HOST_SECRET/],
      [rotate('generic:none', {}), 404],
      // It was never rotated: a page that says otherwise is not of now.
      [rotate('generic:stays', { rotated_at: '2026-01-01T00:00:00.000Z' }), 409],
      [rotate('generic:stays', { rotated_at: 'never' }), 422, /^rotated_at must be/],
    ])
  })
})

// Secrets of the configuration.

async function status(base: string, provider: Signed, key: string) {
  const body = JSON.stringify({ provider, key: key.length })
  return (await deliver(base, provider, body, {}, { secret: key })).status
}

t.test('the current and the previous secret of the configuration verify', async (t) => {
  // The whole value is the secret: with its spaces, its prefix, its newline.
  const fresh: Readonly<Record<Signed, string>> = {
    code_host: keepSecret('spaced', ` ${secret('in-spaces')} with spaces  `),
    payments: keepSecret('prefixed', `whsec_${secret('after-prefix')}`),
    chat: keepSecret('newline', `${secret('with-newline')}\n`),
  }
  const parts: Readonly<Record<Signed, string>> = {
    code_host: fresh.code_host.trim(),
    payments: fresh.payments.slice('whsec_'.length),
    chat: fresh.chat.trimEnd(),
  }
  const old = secret('old')
  const { base } = await startHooks(t, postgres, {
    HOOKS_CODE_HOST_SECRET: fresh.code_host,
    HOOKS_CODE_HOST_SECRET_PREVIOUS: old,
    HOOKS_PAYMENTS_SECRET: fresh.payments,
    HOOKS_PAYMENTS_SECRET_PREVIOUS: old,
    HOOKS_CHAT_SECRET: fresh.chat,
    HOOKS_CHAT_SECRET_PREVIOUS: old,
  })
  t.equal((await cardOf(base, 'payments'))[MATCHED], 'none yet')
  t.equal(await status(base, 'payments', old), 202)
  await untilMatched(base, 'payments', /^the previous one/)
  for (const provider of SIGNED) {
    t.equal(await status(base, provider, fresh[provider]), 202, `${provider}: current`)
    t.equal(await status(base, provider, old), 202, `${provider}: previous`)
    for (const wrong of ['', parts[provider]]) {
      t.equal(await status(base, provider, wrong), 401, `${provider}: ${wrong}`)
    }
  }
})

t.test('secrets of the built-in senders are set on the page, and need no restart', async (t) => {
  const none = { HOOKS_CODE_HOST_SECRET: '', HOOKS_PAYMENTS_SECRET: '', HOOKS_CHAT_SECRET: '' }
  const key = { GATEHOUSE_SECRET_KEY: secretKey() }
  const { base, env, server } = await startHooks(t, postgres, { ...none, ...key })
  const other = await startServer(t, { services: ['hooks'], env })
  const [first, second] = [secret('page-first'), secret('page-second')]

  await t.test('each is taken by all instances', async (t) => {
    for (const provider of SIGNED) {
      t.equal(await status(base, provider, first), 404, `${provider}: unconfigured`)
      t.equal((await cardOf(base, provider))['Secret'], 'missing')
      const set = await change(base, provider, 'rotate', { secret: first, rotated_at: '' })
      t.notMatch(set.text, first)
      t.equal(await status(base, provider, first), 202, `${provider}: at once`)
      const hears = async () => (await status(other.hooks, provider, first)) === 202
      await until(hears, `the other instance to take the secret of ${provider}`)
      t.equal((await cardOf(base, provider))['Secret'], 'configured, set on this page')
    }
  })

  await t.test('rotated, by page and by command, with an overlap', async (t) => {
    const fresh = { secret: second, overlap: '60' }
    await expectStatus(200, change(base, 'payments', 'rotate', fresh))
    t.equal(await status(base, 'payments', second), 202)
    t.equal(await status(base, 'payments', first), 202, 'the previous one, beside it')
    const args = ['provider', 'rotate', 'code_host', '--overlap', '0']
    const { stdout } = await runCli(args, { env, secretShown: true })
    t.match(stdout, /^\S+\n$/, 'the secret stands alone')
    const made = keepSecret('code-host-made', stdout.trim())
    await until(async () => (await status(base, 'code_host', made)) === 202, 'the new secret')
    t.equal(await status(base, 'code_host', first), 401, 'the old one stopped')
  })

  await t.test('what is refused', async (t) => {
    const rotate = (fields: Fields) => formCall('/providers/payments/rotate', fields)
    const state = () => status(base, 'payments', second)
    await refuseAll(t, { service: 'hooks', base, state }, [
      [rotate({}), 422, /The sender makes the secret of stripe: give it as the secret/],
      [rotate({ secret: 'short' }), 422, /must be 8 to 256 characters/],
      [rotate({ secret: first, rotated_at: '' }), 409, /was rotated since/],
      [{ ...rotate({}), call: 'POST /providers/payments/remove' }, 404],
    ])
  })

  await t.test('the environment wins, and the card says so', async (t) => {
    await server.stop()
    await other.stop()
    const configured = secret('configured')
    const set = { ...env, HOOKS_PAYMENTS_SECRET: configured }
    const { hooks } = await startServer(t, { services: ['hooks'], env: set })
    t.equal(await status(hooks, 'payments', configured), 202)
    t.equal(await status(hooks, 'payments', second), 401, 'the stored one')
    t.match((await cardOf(hooks, 'payments'))['Secret'], /^configured by HOOKS_PAYMENTS_SECRET, /)
    t.equal(await status(hooks, 'chat', first), 202, 'a stored one outlives a restart')
  })
})

t.test('an environment file that changes is followed without a restart', async (t) => {
  const [first, second] = [secret('first'), secret('second')]
  const [unused, kept] = [secret('unused'), secret('kept')]
  const file = join(await temporaryFolder(t), 'gatehouse.env')
  const write = (...lines: readonly string[]) => writeFile(file, `${lines.join('\n')}\n`)
  const payments = `HOOKS_PAYMENTS_SECRET=${kept}`
  const env = { ...(await postgres.env(t)), GATEHOUSE_ENV_FILE: file }
  await write(
    `HOOKS_CODE_HOST_SECRET=${first}`,
    payments,
    `HOOKS_PAYMENTS_SECRET_PREVIOUS=${unused}`,
  )
  const { hooks } = await startServer(t, { services: ['hooks'], env })
  t.equal(await status(hooks, 'code_host', first), 202)

  const next = `HOOKS_CODE_HOST_SECRET=${second}`
  await write(next, `HOOKS_CODE_HOST_SECRET_PREVIOUS=${first}`, payments)
  await until(async () => (await status(hooks, 'code_host', second)) === 202, 'the new secret')
  t.equal(await status(hooks, 'code_host', first), 202, 'the previous one, beside it')
  t.equal(await status(hooks, 'payments', unused), 401, 'a previous one that nobody had used')
  await untilRefused(hooks, 'payments', /^matches a retired secret$/)

  await write('# no provider is configured')
  await until(async () => (await status(hooks, 'code_host', second)) === 404, 'no provider')
})
