import { createHash } from 'node:crypto'
import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import type { Response } from '../helpers/http.ts'
import { enable, post, postForm, startHooks, tokenOf } from '../helpers/signing-setup.ts'

const NAVIGATES = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
const STORED =
  'select name, trust_mode, enabled, token_hash from hooks.providers where name like $1'

await onPostgres(t, 'providers', async (t: Test, backend) => {
  const { base, server, env } = await startHooks(t, backend, { HOOKS_PAYMENTS_SECRET: '' })
  const create = (fields: Readonly<Record<string, string>>, headers = {}): Promise<Response> =>
    postForm(base, '/providers', fields, headers)
  const bearer = (token: string): Readonly<Record<string, string>> => ({
    Authorization: `Bearer ${token}`,
  })
  const sent = async (name: string, token: string): Promise<number> =>
    (await post(base, `generic/${name}`, '{}', bearer(token))).status
  let token = ''

  await t.test('the page lists the signed ones, and what a secret is missing for', async (t) => {
    const { status, text, headers } = await request(`${base}/providers`)
    t.match({ status, headers }, { status: 200, headers: { 'content-type': /^text\/html/ } })
    for (const path of ['/webhooks/code_host', '/webhooks/payments', '/webhooks/chat']) {
      t.match(text, path)
    }
    t.match(cardOf(text, 'payments'), 'HOOKS_PAYMENTS_SECRET', 'the variable to set is named')
    t.match(cardOf(text, 'payments'), 'missing')
    t.match(cardOf(text, 'code_host'), 'configured')
    t.notMatch(cardOf(text, 'code_host'), 'missing')
  })

  await t.test('a token is made, shown once, and only its hash is stored', async (t) => {
    const made = await create({ name: 'ci', trust_mode: 'token' })
    t.equal(made.status, 200)
    token = tokenOf(made)
    t.match(made.text, `${base}/webhooks/generic/ci`, 'with the URL to send to')
    t.equal(made.headers['cache-control'], 'no-store')
    for (const path of ['/providers', '/settings', '/']) {
      t.notOk((await request(base + path)).text.includes(token), `not on ${path} afterwards`)
    }
    t.equal(await sent('ci', token), 403, 'it starts disabled')
    await enable(base, 'generic:ci', true)
    t.equal(await sent('ci', token), 202)
  })

  await t.test('an open one needs the acknowledgement', async (t) => {
    await refused(t, await create({ name: 'open', trust_mode: 'open' }), 422, /acknowledge/)
    const no = await create({ name: 'open', trust_mode: 'open', acknowledge_open: 'false' })
    await refused(t, no, 422, /acknowledge/)
    const made = await create({ name: 'open', trust_mode: 'open', acknowledge_open: 'true' })
    t.equal(made.status, 200)
    t.notMatch(made.text, 'id="made-token"', 'it has no token')
    t.equal((await post(base, 'generic/open', '{}')).status, 403, 'it starts disabled')
    await enable(base, 'generic:open', true)
    t.equal((await post(base, 'generic/open', '{}')).status, 202)
  })

  await t.test('what is not created', async (t) => {
    await refused(t, await create({ name: 'ci' }), 409, /There is a provider "generic:ci" already/)
    for (const name of ['code_host', 'payments', 'chat']) {
      await refused(t, await create({ name }), 422, /belongs to a signed provider/)
    }
    for (const name of [
      '',
      'UPPER',
      '-x',
      '_x',
      'a b',
      'a/b',
      'ü',
      'a'.repeat(65),
      '../x',
      'a\0',
    ]) {
      await refused(t, await create({ name }), 422, /The name must be/)
    }
    for (const trust_mode of ['queue', 'Token', '']) {
      await refused(t, await create({ name: 'x', trust_mode }), 422, /^trust_mode must be/)
    }
    t.equal((await create({ name: 'a'.repeat(64) })).status, 200, '64 characters are fine')
    const json = { 'Content-Type': 'application/json' }
    await refused(t, await create({ name: 'x' }, json), 415, /form/)
    const page = await create({ name: 'CI 2' }, NAVIGATES)
    t.match(page, { status: 422, text: /<!doctype/i, headers: { 'content-type': /^text\/html/ } })
    t.match(page.text, 'The name must be')
    t.match(page.text, 'value="CI 2"', 'what was typed is kept')
    t.equal((await create({ name: 'ci' }, NAVIGATES)).status, 409)
  })

  await t.test('the toggle', async (t) => {
    const toggle = (name: string, enabled: string, headers = {}): Promise<Response> =>
      postForm(base, `/providers/${name}/enabled`, { enabled }, headers)
    const off = await toggle('generic%3Aci', 'false')
    t.match(off, { status: 200, headers: { 'content-type': /^text\/html/ }, text: /Disabled/ })
    t.notMatch(off.text, /<!doctype/i, 'the fragment alone')
    t.equal(await sent('ci', token), 403)
    t.match(await toggle('generic:ci', 'true'), { status: 200, text: /Enabled/ }, 'colon as it is')
    t.equal(await sent('ci', token), 202)
    t.equal((await toggle('code_host', 'false')).status, 200)
    t.equal((await post(base, 'code_host', '{}')).status, 403, 'a signed one that is disabled')
    t.equal((await toggle('code_host', 'true')).status, 200)
    t.equal((await post(base, 'code_host', '{}')).status, 401)
    for (const value of ['yes', '1', 'TRUE', '']) {
      await refused(t, await toggle('generic:ci', value), 422, /enabled must be true or false/)
    }
    await refused(t, await postForm(base, '/providers/chat/enabled', {}), 422, /enabled must be/)
    for (const name of ['generic%3Anobody', 'ci', 'queue:x', 'a%2Fb', 'x%00']) {
      const none = await toggle(name, 'true')
      t.equal(none.status, 404, name)
      t.equal(none.headers['content-type'], 'application/problem+json')
    }
    t.match(await toggle('generic:ci', 'true', NAVIGATES), { status: 200, text: /<!doctype/i })
  })

  await t.test('a new token ends the old one', async (t) => {
    const rotated = await postForm(base, '/providers/generic%3Aci/rotate', { overlap: '0' })
    t.equal(rotated.status, 200)
    const fresh = tokenOf(rotated)
    t.not(fresh, token)
    t.equal(await sent('ci', token), 403)
    t.equal(await sent('ci', fresh), 202)
    token = fresh
    for (const name of ['generic:open', 'code_host', 'generic:nobody']) {
      await refused(t, await postForm(base, `/providers/${name}/rotate`, {}), 404, /no provider/)
    }
  })

  await t.test('removal keeps the events', async (t) => {
    const listed = async (): Promise<number> => {
      const { text } = await request(`${base}/log?provider=generic%3Aci`)
      return [...text.matchAll(/data-id="\d+"/g)].length
    }
    const before = await listed()
    t.ok(before > 0)
    t.equal((await postForm(base, '/providers/generic%3Aci/remove', {})).status, 200)
    t.equal(await sent('ci', token), 404)
    t.equal(await listed(), before)
    for (const name of ['generic:ci', 'code_host', 'generic:nobody']) {
      await refused(t, await postForm(base, `/providers/${name}/remove`, {}), 404, /no provider/)
    }
    token = tokenOf(await create({ name: 'ci' }))
  })

  await t.test('what is stored', async (t) => {
    await server.stop()
    const rows = await backend.query(env, STORED, ['generic:ci'])
    const token_hash = createHash('sha256').update(token).digest()
    t.same(rows, [{ name: 'generic:ci', trust_mode: 'token', enabled: false, token_hash }])
    const [open] = await backend.query(env, STORED, ['generic:open'])
    t.match(open, { trust_mode: 'open', enabled: true, token_hash: null })
  })
})

async function refused(t: Test, response: Response, status: number, detail: RegExp): Promise<void> {
  t.equal(response.status, status, String(detail))
  t.equal(response.headers['content-type'], 'application/problem+json')
  t.match(response.json(), { type: 'about:blank', status, detail, instance: /^\/providers/ })
}

/** The part of the page that is about one provider. */
function cardOf(text: string, name: string): string {
  const part = text.split('<article').find((card) => card.includes(`data-provider="${name}"`))
  if (part === undefined) throw new Error(`the page has no card of ${name}`)
  return part
}
