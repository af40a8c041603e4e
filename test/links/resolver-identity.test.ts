import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { makeLink, startLinks } from '../helpers/links-setup.ts'
import { visit } from '../helpers/visits.ts'

const [, postgres] = backends

/** Behind a proxy on 127.0.0.1 that names who is signed in; 127.0.0.2 is somebody else. */
const PROXIED = { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32' }

await t.test('who is believed', async (t) => {
  const { base, user } = await startLinks(t, postgres, PROXIED)
  await makeLink(await user('owner'), 'house-secure', { visibility: 'secure' })
  const status = async (headers: Record<string, string | readonly string[]>, from?: string) =>
    (await visit(base, '/house-secure', { headers, ...(from ? { localAddress: from } : {}) }))
      .status
  const owner = { 'Remote-Email': 'owner@example.com' }
  t.equal(await status(owner), 302)
  t.equal(await status({ 'remote-email': ' OWNER@example.com ' }), 302, 'in other letters')
  t.equal(await status(owner, '127.0.0.2'), 403, 'a peer that is no trusted proxy')
  t.equal(await status({ ...owner, 'X-Forwarded-For': '127.0.0.1' }, '127.0.0.2'), 403)
  t.equal(await status({ ...owner, Host: 'localhost' }, '127.0.0.2'), 403)
  t.equal(await status({ 'Remote-User': 'owner@example.com' }), 403, 'another header')
  t.equal(await status({ 'Remote-Email': '' }), 403)
  t.equal(await status({ 'Remote-Email': 'owner' }), 403, 'no e-mail address')
  const two = ['owner@example.com', 'boss@example.com']
  t.equal(await status({ 'Remote-Email': two }), 403, 'two at once')
  for (const name of ['operator@localhost', ' Operator@LOCALHOST'])
    t.equal(await status({ 'Remote-Email': name }), 403, 'the operator is no name of a proxy')
  const latin1 = (text: string): string => Buffer.from(text).toString('latin1')
  await makeLink(await user('jörg'), 'jorgs', { visibility: 'secure' })
  const jorgs = async (name: string, path = '/jorgs') =>
    (await visit(base, path, { headers: { 'Remote-Email': name } })).status
  t.equal(await jorgs(latin1('Jörg@example.com')), 302, 'UTF-8')
  t.equal(await jorgs('j\xf6rg@example.com'), 403, 'Latin-1 names nobody')
  t.equal(await jorgs(latin1('jörg@example.com'), '/-/'), 200)
  t.equal(await jorgs('j\xf6rg@example.com', '/-/'), 400, 'and is refused on pages')
  t.equal(await status({}), 403, 'with proxies nobody is the local operator')
  t.equal(await status({ Host: 'localhost' }), 403)
})

await t.test('whom a proxy names for the first time becomes a user', async (t) => {
  const { base, env, user } = await startLinks(t, postgres, PROXIED)
  const owner = await user('owner')
  await makeLink(owner, 'house-public')
  await makeLink(owner, 'house-secure', { visibility: 'secure' })
  const users = async (): Promise<readonly unknown[]> =>
    postgres.query(
      env,
      "select email, role from links.users where email like 'new%' order by email",
    )
  const headers = { 'Remote-Email': 'New.One@Example.com' }
  t.equal((await visit(base, '/house-public', { headers })).status, 302)
  t.same(await users(), [], 'a plain visit asks nobody')
  const visits = Array.from({ length: 8 }, () => visit(base, '/house-secure', { headers }))
  t.same(new Set((await Promise.all(visits)).map(({ status }) => status)), new Set([403]))
  t.same(await users(), [{ email: 'new.one@example.com', role: 'user' }])
  await visit(base, '/house-secure', {
    headers: { 'Remote-Email': 'new.two@example.com' },
    localAddress: '127.0.0.2',
  })
  t.equal((await users()).length, 1, 'nobody else names users')
})

await onPostgres(t, 'the local operator', async (t: Test, backend) => {
  const { base, user } = await startLinks(t, backend)
  await makeLink(await user('owner'), 'house-secure', { visibility: 'secure' })
  const status = async (headers: Record<string, string>, path = '/house-secure') =>
    (await visit(base, path, { headers })).status
  const local = new URL(base)
  for (const host of [
    local.host,
    'localhost',
    `localhost:${local.port}`,
    '127.0.0.1',
    '[::1]:8081',
  ]) {
    t.equal(await status({ host }), 302, host)
  }
  for (const host of [
    'go',
    'go.example',
    'localhost.evil.example',
    '192.0.2.1',
    '127.0.0.1.evil',
  ]) {
    t.equal(await status({ host }), 403, host)
  }
  const forwarded = [
    'Forwarded',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'x-forwarded-x',
    'X-Real-IP',
    'Via',
    'Remote-User',
    'CF-Ray',
    'True-Client-IP',
  ]
  for (const name of forwarded) {
    t.equal(await status({ [name]: '127.0.0.1' }), 403, name)
    t.equal(await status({ [name]: '' }), 403, `${name}, empty`)
  }
  const named = { 'Remote-Email': 'owner@example.com', host: 'go.example' }
  t.equal(await status(named), 403, 'without trusted proxies nobody is named')
  const shown = (await visit(base, '/house')).text
  t.match(shown, 'operator@localhost')
  t.match(shown, 'href="/house-secure"', 'an admin')
})
