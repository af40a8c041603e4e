import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import {
  addSigned,
  cardOf,
  change,
  secretIn,
  secretKey,
  sendStandard,
  signingSecret,
} from '../helpers/senders-setup.ts'
import { startServer } from '../helpers/server.ts'
import {
  addProvider,
  deliver,
  post,
  refusals,
  startHooks,
  tokenOf,
} from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

/** Long enough that what comes right after a rotation comes within it, on a busy machine too. */
const OVERLAP_S = 5

/** One way to prove who sends: how a sender is made, how it sends, how its secret is replaced. */
type Way = {
  readonly make: (base: string, name: string) => Promise<string>
  readonly send: (base: string, name: string, secret: string) => Promise<number>
  readonly shown: typeof tokenOf
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

/** Waits until the card says which secret matched last; it is written down within a second or two. */
async function untilMatched(base: string, name: string, what: RegExp): Promise<void> {
  const says = async () => what.test((await cardOf(base, name))['Matched last'] ?? '')
  await until(says, `${name} to say ${what.source}`)
}

await eachBackend(t, 'rotation', async (t: Test, backend) => {
  const { base, server, env } = await startHooks(t, backend, {
    GATEHOUSE_SECRET_KEY: secretKey(),
    HOOKS_ROTATION_OVERLAP_S: '7200',
  })

  for (const [kind, { make, send, shown }] of Object.entries(WAYS)) {
    await t.test(
      `${kind}: old and new during the overlap, only the new one after it`,
      async (t) => {
        const name = `${kind}-sender`
        const old = await make(base, name)
        t.equal(await send(base, name, old), 202)
        await untilMatched(base, `generic:${name}`, /^the current one/)

        const rotated = Date.now()
        const page = await change(base, `generic:${name}`, 'rotate', { overlap: String(OVERLAP_S) })
        t.equal(page.status, 200)
        const fresh = shown(page)
        t.not(fresh, old)
        const within = [
          await send(base, name, old),
          await send(base, name, fresh),
          await send(base, name, old),
        ]
        t.same(within, [202, 202, 202], 'both are accepted')
        t.ok(Date.now() - rotated < OVERLAP_S * 1_000, 'which was within the overlap')
        t.ok((await cardOf(base, `generic:${name}`))['Previous until'], 'the card says how long')
        await untilMatched(base, `generic:${name}`, /^the previous one/)

        await until(async () => (await send(base, name, old)) === 403, 'the overlap to end', 15_000)
        t.ok(Date.now() - rotated >= OVERLAP_S * 1_000, 'not before its end')
        t.equal(await send(base, name, fresh), 202, 'the new one goes on')
        await untilMatched(base, `generic:${name}`, /^the current one/)
        t.equal((await cardOf(base, `generic:${name}`))['Previous until'], undefined)
        const reason = await until(async () => {
          const [newest] = await refusals(base, `&provider=generic:${name}`)
          return newest?.reason
        }, 'the refusal to be listed')
        t.match(reason, /^matches a retired (secret|token)$/)
      },
    )

    await t.test(`${kind}: another rotation ends the overlap before`, async (t) => {
      const name = `${kind}-twice`
      const first = await make(base, name)
      const rotate = (fields = {}) => change(base, `generic:${name}`, 'rotate', fields)
      const second = shown(await rotate())
      const until1 = (await cardOf(base, `generic:${name}`))['Previous until'] ?? ''
      const left = Date.parse(until1.replace(' UTC', 'Z')) - Date.now()
      t.ok(Math.abs(left - 7_200_000) < 60_000, 'the configured overlap when none is given')
      t.equal(await send(base, name, first), 202)
      const third = shown(await rotate())
      t.equal(await send(base, name, first), 403)
      t.equal(await send(base, name, second), 202)
      t.equal(await send(base, name, third), 202)
      const fourth = shown(await rotate({ overlap: '0' }))
      t.same(
        [
          await send(base, name, third),
          await send(base, name, second),
          await send(base, name, fourth),
        ],
        [403, 403, 202],
        'an overlap of 0 stops the old one at once',
      )
    })

    await t.test(
      `${kind}: a rotation says of what was used before that it is previous`,
      async (t) => {
        const name = `${kind}-turns`
        const old = await make(base, name)
        t.equal((await cardOf(base, `generic:${name}`))['Matched last'], 'none yet')
        await send(base, name, old)
        await untilMatched(base, `generic:${name}`, /^the current one/)
        const fresh = shown(await change(base, `generic:${name}`, 'rotate'))
        await untilMatched(base, `generic:${name}`, /^the previous one/)
        // Used once more under the name that is already written down: it is another secret now.
        await send(base, name, fresh)
        await untilMatched(base, `generic:${name}`, /^the current one/)
        shown(await change(base, `generic:${name}`, 'rotate'))
        shown(await change(base, `generic:${name}`, 'rotate'))
        await untilMatched(base, `generic:${name}`, /^none yet/)
      },
    )
  }

  await t.test('by command, with and without an overlap', async (t) => {
    const old = await addProvider(base, 'by-command')
    const rotate = async (...flags: string[]): Promise<string> => {
      const args = ['provider', 'rotate', 'by-command', ...flags]
      const { code, stdout, stderr } = await runCli(args, { env, secretShown: true })
      t.equal(code, 0)
      t.match(stdout, /^[\w-]{43}\n$/, 'the token stands alone')
      t.comment(stderr.trim())
      said = stderr
      return keepSecret('rotated', stdout.trim())
    }
    let said = ''
    const { send } = WAYS.token
    const second = await rotate('--overlap', '1h')
    t.match(said, 'generic:by-command has a new token; the old one is accepted as well for 1h')
    await until(async () => (await send(base, 'by-command', second)) === 202, 'the new token')
    t.equal(await send(base, 'by-command', old), 202)
    await rotate()
    t.match(said, 'for 2h', 'the configured overlap')
    const last = await rotate('--overlap=0')
    t.match(said, 'the old one stops at once')
    await until(async () => (await send(base, 'by-command', last)) === 202, 'the last token')
    t.equal(await send(base, 'by-command', second), 403)
  })

  await t.test('a signing secret that the sender made replaces ours', async (t) => {
    const old = await addSigned(base, 'theirs')
    const theirs = signingSecret()
    const page = await change(base, 'generic:theirs', 'rotate', { secret: theirs })
    t.match(page.text, 'generic:theirs has its new secret')
    t.notMatch(page.text, theirs)
    t.equal((await sendStandard(base, 'theirs', theirs)).status, 202)
    t.equal((await sendStandard(base, 'theirs', old)).status, 202)
    const args = ['provider', 'rotate', 'theirs', '--secret=-', '--overlap', '0']
    const piped = signingSecret(64)
    t.match(await runCli(args, { env, input: piped }), {
      code: 0,
      stdout: '',
      stderr: /new secret/,
    })
    await until(
      async () => (await sendStandard(base, 'theirs', piped)).status === 202,
      'the new secret',
    )
    t.equal((await sendStandard(base, 'theirs', theirs)).status, 403)
  })

  await t.test('what is refused', async (t) => {
    const token = await addProvider(base, 'stays')
    for (const overlap of ['-1', '1h', '', 'x', '2592001', '99999999']) {
      const refused = await change(base, 'generic:stays', 'rotate', { overlap })
      t.equal(refused.status, 422, `overlap "${overlap}"`)
      t.match(refused.json(), { detail: /overlap must be a whole number of seconds/ })
    }
    const given = await change(base, 'generic:stays', 'rotate', { secret: signingSecret() })
    t.equal(given.status, 422, 'a token is made here')
    t.equal((await change(base, 'code_host', 'rotate')).status, 404)
    t.equal(await WAYS.token.send(base, 'stays', token), 202, 'nothing was changed')
  })

  await t.test('what matched last outlives a restart', async (t) => {
    const token = await addProvider(base, 'kept')
    await WAYS.token.send(base, 'kept', token)
    // At once: what is not written down yet is on the way out.
    await server.stop()
    const again = await startServer(t, { services: ['hooks'], env })
    t.match((await cardOf(again.hooks, 'generic:kept'))['Matched last'], /^the current one/)
  })
})

t.test('secrets in the configuration: the card says which one is used', async (t: Test) => {
  const [old, fresh] = [secret('old'), secret('fresh')]
  const { base, env, server } = await startHooks(t, backends[0], {
    HOOKS_PAYMENTS_SECRET: fresh,
    HOOKS_PAYMENTS_SECRET_PREVIOUS: old,
  })
  t.equal((await cardOf(base, 'payments'))['Matched last'], 'none yet')
  t.equal((await deliver(base, 'payments', '{"id":"1"}', {}, { secret: old })).status, 202)
  await untilMatched(base, 'payments', /^the previous one/)
  t.equal((await deliver(base, 'payments', '{"id":"2"}', {}, { secret: fresh })).status, 202)
  await untilMatched(base, 'payments', /^the current one/)
  await server.stop()

  // What was current may be the previous one now: the card claims nothing of it.
  const next = secret('next')
  const changed = { HOOKS_PAYMENTS_SECRET: next, HOOKS_PAYMENTS_SECRET_PREVIOUS: fresh }
  const again = await startServer(t, { services: ['hooks'], env: { ...env, ...changed } })
  t.equal((await cardOf(again.hooks, 'payments'))['Matched last'], 'none yet')
  const sent = await deliver(again.hooks, 'payments', '{"id":"3"}', {}, { secret: fresh })
  t.equal(sent.status, 202)
  await untilMatched(again.hooks, 'payments', /^the previous one/)
})
