import { createHash } from 'node:crypto'
import { t, type Test } from 'tap'
import { onPostgres } from '../../helpers/backends.ts'
import { until } from '../../helpers/until.ts'
import { request } from '../../helpers/http.ts'
import { expectStatus, refuseAll, type Refusal } from '../../helpers/refusals.ts'
import {
  SECRETS,
  deliver,
  formCall,
  enable,
  eventIds,
  post,
  postForm,
  startHooks,
  store,
  tokenOf,
  type Fields,
} from '../../helpers/hooks.ts'

const NAVIGATES = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
const STORED =
  'select name, trust_mode, enabled, token_hash from hooks.providers where name like $1 order by name'

await onPostgres(t, 'providers', async (t, backend) => {
  const { base, server, env } = await startHooks(t, backend, {
    HOOKS_PAYMENTS_SECRET: '',
    HOOKS_PAYMENTS_SECRET_PREVIOUS: SECRETS.payments,
  })
  const create = (fields: Fields, headers = {}) => postForm(base, '/providers', fields, headers)
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
  const sent = async (name: string, token: string) =>
    (await post(base, `generic/${name}`, '{}', bearer(token))).status
  let token = ''
  const stored = () => backend.query(env, STORED, ['%'])
  const refused = (t: Test, rows: readonly Refusal[]) =>
    refuseAll(t, { service: 'hooks', base, state: stored }, rows)

  await t.test('the page says what a secret is missing for', async (t) => {
    const { text: closed } = await request(`${base}/providers`)
    t.match(cardOf(closed, 'payments'), /Stripe.*not set up/s)
    const { text } = await request(`${base}/providers?open=payments`)
    t.match(cardOf(text, 'payments'), /HOOKS_PAYMENTS_SECRET/, 'the variable to set is named')
    t.match(cardOf(text, 'code_host'), 'configured')
    await enable(base, 'payments', false)
    const { status } = await deliver(base, 'payments', '{}')
    t.equal(status, 404, 'with a previous secret alone it is unconfigured, not disabled')
  })

  await t.test('a token is made, shown once, and only its hash is stored', async (t) => {
    const made = await expectStatus(200, create({ name: 'ci', trust_mode: 'token' }))
    token = tokenOf(made)
    t.match(made.text, `${base}/webhooks/generic/ci`, 'with the URL to send to')
    t.equal(made.headers['cache-control'], 'no-store')
    t.notOk(
      (await request(`${base}/providers`)).text.includes(token),
      'not on the page afterwards',
    )
    t.equal(await sent('ci', token), 403, 'it starts disabled')
    await enable(base, 'generic:ci', true)
    t.equal(await sent('ci', token), 202)
  })

  await t.test('an open provider gets a token and keeps its URL', async (t) => {
    const { headers } = await postForm(base, '/providers/new', {}, NAVIGATES)
    const [, name = ''] =
      /generic%3A(url-[0-9a-f]{20})\/first/.exec(String(headers.location)) ?? []
    const path = `/providers/generic:${name}/verify`
    await expectStatus(202, post(base, `generic/${name}`, '{}'), 'it is open, and enabled')
    t.match((await request(base + path)).text, 'Any sender, with a token')
    const trust = { trust_mode: 'token' }
    await refused(t, [
      [formCall(path, { trust_mode: 'open' }), 422, /must be token or signed/],
      [formCall(path, { scheme: 'github' }), 422, /GATEHOUSE_SECRET_KEY/],
      [formCall('/providers/generic:ci/verify', trust), 404, /no open provider "generic:ci"/],
      ['GET /providers/code_host/verify', 404, /no open provider "code_host"/],
    ])
    const given = tokenOf(await postForm(base, path, { trust_mode: 'token', scheme: 'gitlab' }))
    const headersOf = { 'X-Gitlab-Token': given }
    await expectStatus(403, post(base, `generic/${name}`, '{}'))
    await expectStatus(202, post(base, `generic/${name}`, '{}', headersOf))
    await refused(t, [[formCall(path, trust), 404, /no open provider/]])
  })

  await t.test('the page of a new provider enables it at once, and waits for it', async (t) => {
    const tiles = await request(`${base}/providers/new?name=generic:shoop`)
    t.match(tiles.text, 'href="/providers/new?scheme=shopify&amp;name=shoop"')
    const added = await create({ name: 'shoop', trust_mode: 'token', enabled: 'true' })
    const made = tokenOf(added)
    t.match(added.text, /Waiting for the first delivery…/)
    const path = `${base}/providers/${encodeURIComponent('generic:shoop')}/first`
    t.equal(await sent('shoop', 'wrong'), 403)
    const refused = async () => /refused with 403.*wrong token/s.test((await request(path)).text)
    await until(refused, 'the refused delivery to be shown')
    t.equal(await sent('shoop', made), 202)
    t.match((await request(path)).text, /It has arrived/)
    await expectStatus(404, request(`${base}/providers/none/first`))
  })

  await t.test('an open one needs the acknowledgement', async (t) => {
    const open = { name: 'open', trust_mode: 'open' }
    await refused(t, [[formCall('/providers', open), 422, /acknowledge/]])
    const made = await expectStatus(200, create({ ...open, acknowledge_open: 'true' }))
    t.notMatch(made.text, 'id="made-token"', 'it has no token')
    await expectStatus(403, post(base, 'generic/open', '{}'), 'it starts disabled')
  })

  await t.test('what is not created', async (t) => {
    const bad = ['', 'UPPER', '-x', 'a b', 'ü', 'a'.repeat(65), '../x', 'a\0']
    const create422 = (fields: Fields, text: RegExp): Refusal => [
      formCall('/providers', fields),
      422,
      text,
    ]
    await refused(t, [
      [formCall('/providers', { name: 'ci' }), 409, /is a provider "generic:ci" already/],
      create422({ name: 'chat' }, /belongs to a signed provider/),
      ...bad.map((name) => create422({ name }, /The name must be/)),
      create422({ name: 'x', trust_mode: 'queue' }, /^trust_mode must be/),
      [{ call: 'POST /providers', body: { name: 'x' } }, 415, /form/],
    ])
    await expectStatus(200, create({ name: 'a'.repeat(64) }), '64 characters are fine')
    const page = await create({ name: 'CI 2' }, NAVIGATES)
    t.match(page, { status: 422, text: /<!doctype/i, headers: { 'content-type': /^text\/html/ } })
    t.match(page.text, 'The name must be')
    t.match(page.text, 'value="CI 2"', 'what was typed is kept')
  })

  await t.test('the toggle', async (t) => {
    const toggle = (name: string, enabled: string, headers = {}) =>
      postForm(base, `/providers/${name}/enabled`, { enabled }, headers)
    await refused(t, [
      [formCall('/providers/x%00/enabled', { enabled: 'true' }), 404],
      [formCall('/providers/generic:ci/enabled', { enabled: 'yes' }), 422],
      [formCall('/providers/generic:ci/enabled', { enabled: '' }), 422],
    ])
    t.match((await toggle('generic:ci', 'true')).text, /^<form .*aria-checked="true"/)
    t.match(await toggle('generic:ci', 'true', NAVIGATES), {
      status: 303,
      headers: { location: '/providers?open=generic%3Aci' },
    })
  })

  await t.test('removal keeps the events', async (t) => {
    const id = await store(base, 'ci', '{}', bearer(token))
    const before = await eventIds(base)
    t.ok(before.includes(id))
    await expectStatus(200, postForm(base, '/providers/generic%3Aci/remove', {}))
    t.equal(await sent('ci', token), 404)
    t.same(await eventIds(base), before)
    const none = /no provider/
    await refused(t, [
      [formCall('/providers/generic:ci/remove'), 404, none],
      [formCall('/providers/code_host/remove'), 404, none],
      [formCall('/providers/generic:open/rotate'), 404, none],
    ])
    token = tokenOf(await create({ name: 'ci' }))
  })

  await t.test('what is stored', async (t) => {
    await server.stop()
    const rows = await backend.query(env, STORED, ['generic:ci'])
    const token_hash = createHash('sha256').update(token).digest()
    t.same(rows, [{ name: 'generic:ci', trust_mode: 'token', enabled: false, token_hash }])
    const whole = await backend.query(env, 'select p::text as text from hooks.providers p')
    const text = whole.map((row) => row['text']).join('\n')
    t.notOk(text.includes(token), 'the token is not stored as text')
    t.notOk(text.includes(Buffer.from(token).toString('hex')), 'nor as bytes')
  })
})

/** The part of the page that is about one provider. */
function cardOf(text: string, name: string) {
  const part = text.split('<article').find((card) => card.includes(`data-provider="${name}"`))
  if (part === undefined) throw new Error(`the page has no card of ${name}`)
  return part
}
