import { createHash } from 'node:crypto'
import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import {
  addProvider,
  enable,
  eventIds,
  payloadOf,
  post,
  postForm,
  refusals,
  shown,
  startHooks,
  tokenOf,
} from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

const LIMIT = 4_096
const LONG = 'x'.repeat(LIMIT + 1)

await eachBackend(t, 'generic receivers', async (t: Test, backend) => {
  const { base, server, env } = await startHooks(t, backend, { HOOKS_MAX_BODY: String(LIMIT) })
  const token = await addProvider(base, 'ci')
  const wrong = secret('wrong-token')
  await addProvider(base, 'lan', { open: true })
  const idle = await addProvider(base, 'idle', { enabled: false })
  const bearer = (value: string): { Authorization: string } => ({
    Authorization: `Bearer ${value}`,
  })
  const status = async (path: string, headers = {}, body = '{}'): Promise<number> =>
    (await post(base, `generic/${path}`, body, headers)).status

  await t.test('404 comes before everything else', async (t) => {
    const longest = 'a'.repeat(64)
    await addProvider(base, longest, { open: true })
    t.equal(await status(longest), 202, '64 characters')
    const names = [
      'nobody',
      'CI',
      '-ci',
      '_ci',
      'ci%20',
      'c.i',
      'ci%2Fci',
      `${longest}a`,
      '%',
      '%00',
    ]
    for (const name of names) {
      const answer = await post(base, `generic/${name}`, LONG, bearer(wrong))
      t.equal(answer.status, 404, name)
      t.match(answer.json(), { type: 'about:blank', title: 'Not Found', status: 404 })
      t.equal(answer.headers['content-type'], 'application/problem+json')
    }
    // The queue's and the signed providers' names lead nowhere here.
    for (const name of ['code_host', 'chat', 'payments', 'generic:ci', 'queue:x']) {
      t.equal(await status(name), 404, name)
    }
    t.equal(await status('nobody/some-token'), 404, 'with a path token')
    t.equal(await status('ci/a/b'), 404, 'too long a path')
  })

  await t.test('403 disabled comes before 413 and the token', async (t) => {
    t.equal(await status('idle', bearer(idle)), 403)
    t.equal(await status('idle', bearer(wrong), LONG), 403)
    await enable(base, 'generic:idle', true)
    t.equal(await status('idle', bearer(idle)), 202, 'enabled')
    await enable(base, 'generic:idle', false)
    t.equal(await status('idle', bearer(idle)), 403, 'disabled again')
  })

  await t.test('413 comes before the token', async (t) => {
    t.equal(await status('ci', {}, LONG), 413)
    t.equal(await status('ci', bearer(wrong), LONG), 413)
    t.equal(await status('lan', {}, LONG), 413)
    t.equal(await status('lan', {}, LONG.slice(1)), 202, 'the limit itself')
  })

  await t.test('a token is taken from four places', async (t) => {
    t.equal(await status('ci', bearer(token)), 202, 'Authorization')
    t.equal(await status('ci', { authorization: `bearer ${token}` }), 202, 'scheme in lower case')
    t.equal(await status('ci', { 'X-Webhook-Token': token }), 202, 'X-Webhook-Token')
    t.equal(await status(`ci?token=${token}`), 202, 'query')
    t.equal(await status(`ci?a=1&token=${encodeURIComponent(token)}&b=2`), 202, 'in a longer query')
    t.equal(await status(`ci/${token}`), 202, 'path')
  })

  await t.test('a missing, empty or wrong token is 403', async (t) => {
    const before = await eventIds(base)
    t.equal(await status('ci'), 403, 'none')
    for (const value of ['', ' ', wrong, token.slice(1), `${token}x`, token.toUpperCase()]) {
      t.equal(await status('ci', bearer(value)), 403, `Bearer of ${value.length} characters`)
      const header = { 'X-Webhook-Token': value }
      t.equal(await status('ci', header), 403, `header of ${value.length} characters`)
      const query = encodeURIComponent(value)
      t.equal(await status(`ci?token=${query}`), 403, `query of ${value.length} characters`)
    }
    t.equal(await status(`ci/${wrong}`), 403, 'path')
    t.equal(await status(`ci?other=${token}`), 403, 'under another name')
    t.equal(await status('ci', { 'X-Token': token }), 403, 'in another header')
    t.equal(await status('ci', { 'X-Webhook-Token': [token, token] }), 403, 'header twice')
    t.equal(await status('ci', bearer(idle)), 403, "another provider's token")
    const answer = await post(base, `generic/ci/${wrong}`, '{}')
    t.match(answer.json(), { status: 403, title: 'Forbidden', instance: '/webhooks/generic/ci' })
    t.same(await eventIds(base), before, 'nothing was stored')
  })

  await t.test('of several tokens the first place decides', async (t) => {
    const header = (value: string): Record<string, string> => ({ 'X-Webhook-Token': value })
    t.equal(await status(`ci/${token}?token=${token}`, { ...bearer(wrong), ...header(token) }), 403)
    t.equal(await status(`ci/${wrong}?token=${wrong}`, { ...bearer(token), ...header(wrong) }), 202)
    t.equal(await status(`ci/${token}?token=${token}`, header(wrong)), 403)
    t.equal(await status(`ci/${wrong}?token=${wrong}`, header(token)), 202)
    t.equal(await status(`ci/${token}?token=${wrong}`), 403)
    t.equal(await status(`ci/${wrong}?token=${token}`), 202)
    t.equal(await status(`ci/${token}`, bearer('')), 403, 'an empty one decides too')
    t.equal(await status(`ci/${token}?token=`), 403)
    // Another scheme presents no token.
    t.equal(await status(`ci/${token}`, { Authorization: 'Basic dXNlcjpwYXNz' }), 202)
  })

  await t.test('stored events say how they were trusted', async (t) => {
    const typed = { 'X-Event-Type': 'deploy', 'X-Delivery-Id': 'd-1', ...bearer(token) }
    const byToken = (await post(base, 'generic/ci', '{}', typed)).json<Ack>()
    t.match(byToken, { provider: 'generic:ci', trust_mode: 'token', verified: false })
    t.match((await shown(base, byToken.id)).facts, {
      'Trust mode': 'token',
      Verified: 'no',
      Verification: 'token ok',
      'Event type': 'deploy',
      'Delivery id': 'd-1',
      Provider: 'generic:ci',
    })
    const open = (await post(base, 'generic/lan', 'bytes', bearer(wrong))).json<Ack>()
    t.match(open, { provider: 'generic:lan', trust_mode: 'open', verified: false })
    t.match((await shown(base, open.id)).facts, {
      'Trust mode': 'open',
      Verified: 'no',
      Verification: 'none',
      'Event type': 'none',
      'Delivery id': 'none',
    })
  })

  await t.test('delivery ids come from three headers, in order', async (t) => {
    const ids = { 'Webhook-Id': 'w', 'X-Delivery-Id': 'x', 'Idempotency-Key': 'i' }
    for (const expected of Object.entries(ids)) {
      const [name, id] = expected
      const sent = await post(base, 'generic/lan', name, ids)
      t.equal((await shown(base, sent.json<Ack>().id)).facts['Delivery id'], id, name)
      delete ids[name as keyof typeof ids]
    }
    const twice = [await post(base, 'generic/lan', 'same'), await post(base, 'generic/lan', 'same')]
    const [one, two] = twice.map((answer) => answer.json<Ack>().id)
    t.not(one, two, 'without an id the same bytes are two events')
  })

  await t.test('whatever the bytes and the type are, they are stored', async (t) => {
    const bodies = ['', '[1]', 'null', '{"a":', Buffer.from([0, 255, 254]), '\r\n']
    for (const type of ['application/json', 'text/xml', 'nonsense', 'image/png; x="y"']) {
      for (const body of bodies) {
        const sent = await post(base, 'generic/lan', body, { 'Content-Type': type })
        t.equal(sent.status, 202, type)
        const { id } = sent.json<Ack>()
        t.ok((await payloadOf(base, id)).equals(Buffer.from(body)))
      }
    }
    t.equal(await status(`lan/any?token=${wrong}`), 202, 'an open one ignores tokens')
  })

  await t.test('a rotated token works, the old one is known as retired', async (t) => {
    const old = await addProvider(base, 'turns')
    t.equal(await status('turns', bearer(old)), 202)
    const page = await postForm(base, '/providers/generic%3Aturns/rotate', { overlap: '0' })
    const fresh = tokenOf(page)
    t.not(fresh, old)
    t.equal(await status('turns', bearer(fresh)), 202)
    t.equal(await status('turns', bearer(old)), 403)
    const reason = await until(async () => {
      const [newest] = await refusals(base, '&provider=generic:turns')
      return newest?.reason
    }, 'the refusal to be listed')
    t.equal(reason, 'matches a retired token')
    const open = await postForm(base, '/providers/generic%3Alan/rotate', { overlap: '0' })
    t.equal(open.status, 404, 'an open provider has no token')
  })

  await t.test('names of signed providers are reserved, others have a form', async (t) => {
    for (const name of ['code_host', 'payments', 'chat', 'A', '-a', 'a b', '', 'a'.repeat(65)]) {
      const refused = await postForm(base, '/providers', { name, trust_mode: 'token' })
      t.equal(refused.status, 422, `"${name}"`)
    }
    const taken = await postForm(base, '/providers', { name: 'ci', trust_mode: 'token' })
    t.equal(taken.status, 409)
    t.equal(await status('ci', bearer(token)), 202, 'which kept its token')
    const silent = await postForm(base, '/providers', { name: 'lan2', trust_mode: 'open' })
    t.equal(silent.status, 422, 'open without acknowledgement')
    t.equal(await status('lan2'), 404)
    const cli = await runCli(['provider', 'add', 'code_host'], { env })
    t.match(cli, { code: 1, stdout: '', stderr: /belongs to a signed provider/ })
  })

  await t.test('a provider that is removed is unknown, its events stay', async (t) => {
    const gone = await addProvider(base, 'gone')
    const { id } = (await post(base, 'generic/gone', '{}', bearer(gone))).json<Ack>()
    t.equal((await postForm(base, '/providers/generic%3Agone/remove', {})).status, 200)
    t.equal(await status('gone', bearer(gone)), 404)
    t.ok((await eventIds(base)).includes(id))
    t.equal((await postForm(base, '/providers/code_host/remove', {})).status, 404, 'never a signed')
  })

  await t.test('a token provider without a token is disabled', async (t) => {
    await server.stop()
    const [row] = await backend.query(
      env,
      `update hooks.providers set token_hash = null where name = 'generic:ci' returning enabled`,
    )
    t.equal(row?.['enabled'], true)
    // Nothing but a hand at the database could do this: even then an empty token matches nothing.
    await backend.query(
      env,
      `update hooks.providers set token_hash = sha256('') where name = 'generic:turns'`,
    )
    const again = await startServer(t, { services: ['hooks'], env })
    const url = `${again.hooks}/webhooks/generic/ci`
    for (const path of ['', `/${token}`, '?token=', `?token=${token}`]) {
      const sent = await post(again.hooks, `generic/ci${path}`, '{}')
      t.equal(sent.status, 403, path === '' ? url : 'with a token')
      t.match(sent.json(), { detail: /disabled/ })
    }
    for (const headers of [bearer(''), { 'X-Webhook-Token': '' }]) {
      const sent = await post(again.hooks, 'generic/turns?token=', '{}', headers)
      t.equal(sent.status, 403, 'an empty token')
      t.match(sent.json(), { detail: /missing or wrong/ })
    }
  })

  await t.test('only the hash of a token is stored', async (t) => {
    const rows = await backend.query(env, 'select p::text as text from hooks.providers p')
    const text = rows.map((row) => row['text']).join('\n')
    t.ok(text.includes(createHash('sha256').update(idle).digest('hex')), 'its hash')
    t.notOk(text.includes(idle), 'not as text')
    t.notOk(text.includes(Buffer.from(idle).toString('hex')), 'not as bytes')
  })
})
