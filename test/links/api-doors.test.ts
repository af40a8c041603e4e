import { t } from 'tap'
import type { Test } from 'tap'
import { goodForm } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { makeLink, refuses, startLinks } from '../helpers/links-setup.ts'
import type { Caller, LinksServer } from '../helpers/links-setup.ts'

const ID = '00000000-0000-4000-8000-000000000000'

/** Every operation but GET /config. */
const OPERATIONS = [
  'GET /links',
  'POST /links',
  `GET /links/${ID}`,
  `PUT /links/${ID}`,
  `DELETE /links/${ID}`,
  `GET /links/${ID}/owners`,
  `POST /links/${ID}/owners`,
  `DELETE /links/${ID}/owners/${ID}`,
  `GET /links/${ID}/shares`,
  `POST /links/${ID}/shares`,
  `DELETE /links/${ID}/shares/${ID}`,
  'GET /tags',
  'GET /tags/docs/links',
  'GET /users/me',
  'GET /tokens',
  'POST /tokens',
  `DELETE /tokens/${ID}`,
  'GET /admin/users',
  `PUT /admin/users/${ID}/role`,
  'GET /admin/links',
].map((line) => line.split(' ') as [string, string])

const ODD = [
  ['GET', '/links/no-id'],
  ['PATCH', '/links'],
] as const

/** The methods of each path, as `Allow` has them. */
const METHODS = {
  '/config': 'GET, HEAD',
  '/links': 'GET, HEAD, POST',
  [`/links/${ID}`]: 'DELETE, GET, HEAD, PUT',
  [`/links/${ID}/owners`]: 'GET, HEAD, POST',
  [`/links/${ID}/owners/${ID}`]: 'DELETE',
  [`/links/${ID}/shares`]: 'GET, HEAD, POST',
  [`/links/${ID}/shares/${ID}`]: 'DELETE',
  '/tags': 'GET, HEAD',
  '/tags/docs/links': 'GET, HEAD',
  '/users/me': 'GET, HEAD',
  '/tokens': 'GET, HEAD, POST',
  [`/tokens/${ID}`]: 'DELETE',
  '/admin/users': 'GET, HEAD',
  [`/admin/users/${ID}/role`]: 'PUT',
  '/admin/links': 'GET, HEAD',
}

const UNKNOWN = [
  '/',
  '/nothing',
  '/links/',
  '/Links',
  `/links/${ID}/`,
  `/links/${ID}/nothing`,
  '/tags/docs',
  '/tags//links',
  '/tags/%zz/links',
  '/users',
  `/users/${ID}`,
  '/admin',
  '/config/more',
  '//links',
]

await onPostgres(t, 'doors of the API', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const ann = await links.user('ann')
  const root = await links.user('root', { admin: true })

  await t.test('401 UNAUTHORIZED without a valid token, before anything else', async (t) => {
    const stranger = links.api()
    for (const [method, path] of [...OPERATIONS, ...ODD]) {
      const answer = await stranger(method, path)
      refuses(t, answer, 401, 'UNAUTHORIZED', { what: `${method} ${path}`, error: 'unauthorized' })
      t.equal(answer.headers['www-authenticate'], 'Bearer')
    }
    for (const path of UNKNOWN) refuses(t, await stranger('GET', path), 401, 'UNAUTHORIZED')
    refuses(t, await stranger('POST', '/config', {}), 401, 'UNAUTHORIZED')
    refuses(t, await stranger('POST', '/links', 'no json'), 401, 'UNAUTHORIZED')
    refuses(t, await stranger('POST', '/links', 'a'.repeat(100_000)), 401, 'UNAUTHORIZED')
    refuses(t, await stranger('GET', '/links?limit=none'), 401, 'UNAUTHORIZED')
  })

  await t.test('what is no valid token', async (t) => {
    const { token } = ann
    const other = token.slice(0, -1) + (token.endsWith('a') ? 'b' : 'a')
    for (const authorization of [
      '',
      'Bearer',
      'Bearer ',
      token,
      `Basic ${Buffer.from(`ann:${token}`).toString('base64')}`,
      `Token ${token}`,
      `Bearer ${other}`,
      `Bearer ${token}x`,
      `Bearer ${token.slice(0, -1)}`,
      `Bearer ${token.toLowerCase()}`,
      `Bearer ${token.slice(3)}`,
      `Bearer ${token} ${token}`,
      `Bearer ${token},${token}`,
      `Bearer gh_${'0'.repeat(43)}`,
      `Bearer ${'x'.repeat(8_000)}`,
      'Bearer \u00ff',
    ]) {
      const answer = await links.api()('GET', '/links', undefined, { authorization })
      const what = authorization.replaceAll(token, 'TOKEN').slice(0, 40)
      refuses(t, answer, 401, 'UNAUTHORIZED', { what: `"${what}"`, error: 'unauthorized' })
    }
    for (const scheme of ['bearer', 'BEARER', 'Bearer ']) {
      const authorization = `${scheme} ${token}`
      const { status } = await links.api()('GET', '/links', undefined, { authorization })
      t.equal(status, 200, `the scheme's name may be written ${scheme}`)
    }
  })

  await t.test('no cookie, header, query or body stands for a token', async (t) => {
    const { token } = ann
    for (const headers of [
      { cookie: `token=${token}; session=${token}; gh_token=${token}` },
      { 'remote-email': 'operator@localhost', 'remote-user': 'operator' },
      { 'x-forwarded-email': ann.email, 'x-forwarded-user': ann.email },
      { 'x-forwarded-for': '127.0.0.1', 'x-forwarded-host': 'localhost' },
      { 'x-api-key': token, 'x-auth-token': token, 'x-webhook-token': token },
      { 'proxy-authorization': `Bearer ${token}` },
      { 'x-authorization': `Bearer ${token}` },
    ]) {
      for (const path of ['/links', '/users/me', '/admin/users']) {
        const answer = await links.api()('GET', path, undefined, headers)
        refuses(t, answer, 401, 'UNAUTHORIZED', { what: Object.keys(headers).join(', ') })
      }
    }
    for (const name of ['token', 'access_token', 'api_key', 'authorization']) {
      const query = `?${name}=${token}`
      refuses(t, await links.api()('GET', `/links${query}`), 401, 'UNAUTHORIZED')
      const body = { slug: 'by-body', url: 'https://example.com/', [name]: token }
      refuses(t, await links.api()('POST', '/links', body), 401, 'UNAUTHORIZED')
    }
    const asAnn = await ann.api<{ email: string }>('GET', '/users/me', undefined, {
      'remote-email': 'operator@localhost',
    })
    t.equal(asAnn.json.email, ann.email, 'beside a token such a header changes nothing')
  })

  await t.test('the same behind a trusted proxy that names the user', async (t) => {
    const env = { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8' }
    const behind = await startLinks(t, backend, { ...(await backend.env(t)), ...env })
    const headers = { 'remote-email': 'bob@example.com', 'x-forwarded-for': '192.0.2.7' }
    for (const path of ['/links', '/users/me', '/nothing']) {
      const answer = await behind.api()('GET', path, undefined, headers)
      refuses(t, answer, 401, 'UNAUTHORIZED', { what: path })
    }
  })

  await t.test('an unknown path is 404 with a token', async (t) => {
    for (const path of UNKNOWN) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        refuses(t, await ann.api(method, path), 404, 'NOT_FOUND', { what: `${method} ${path}` })
      }
    }
    const outside = await request(`${links.base}/api/v2/links`)
    t.equal(outside.status, 404, 'another version')
    t.match(outside.json(), { code: 'NOT_FOUND' })
  })

  await t.test('a wrong method is 405 with Allow', async (t) => {
    for (const [path, allow] of Object.entries(METHODS)) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        if (allow.split(', ').includes(method)) continue
        const answer = await root.api(method, path)
        refuses(t, answer, 405, 'METHOD_NOT_ALLOWED', { what: `${method} ${path}` })
        t.equal(answer.headers['allow'], allow)
      }
    }
  })

  await t.test('below /admin/ whoever is no admin is refused, whatever is there', async (t) => {
    for (const [method, path] of [
      ['GET', '/admin/nothing'],
      ['GET', '/admin/'],
      ['POST', '/admin/users'],
      ['GET', `/admin/users/${ID}/role`],
    ] as const) {
      const error = 'only admins may do this'
      refuses(t, await ann.api(method, path), 403, 'FORBIDDEN', {
        what: `${method} ${path}`,
        error,
      })
      refuses(t, await links.api()(method, path), 401, 'UNAUTHORIZED')
    }
    refuses(t, await root.api('GET', '/admin/nothing'), 404, 'NOT_FOUND')
  })

  await t.test('HEAD is GET without its body', (t) => headLikeGet(t, links, root))

  await t.test('GET /config is public and says the short keyword alone', async (t) => {
    const answer = await links.api()('GET', '/config')
    t.equal(answer.status, 200)
    t.same(answer.json, { short_keyword: '127.0.0.1' })
    goodForm(t, answer)
    const withBadToken = await links.api('gh_none')('GET', '/config')
    t.equal(withBadToken.status, 200, 'a bad token does not matter')
    for (const [env, keyword] of [
      [{ LINKS_BASE_URL: 'https://go.example.com' }, 'go'],
      [{ LINKS_BASE_URL: 'https://go.example.com', LINKS_SHORT_KEYWORD: 'jump' }, 'jump'],
    ] as const) {
      const named = await startLinks(t, backend, { ...(await backend.env(t)), ...env })
      t.same((await named.api()('GET', '/config')).json, { short_keyword: keyword })
    }
  })
})

async function headLikeGet(t: Test, links: LinksServer, root: Caller): Promise<void> {
  const link = await makeLink(root, 'headed', { tags: ['docs'] })
  const gets = OPERATIONS.filter(([method]) => method === 'GET').map(([, path]) =>
    path.replace(ID, link.id),
  )
  for (const path of [...gets, '/config', '/links/no-id', `/links/${ID}`, '/nothing']) {
    const get = await root.api('GET', path)
    const head = await root.api('HEAD', path)
    t.same([head.status, head.text], [get.status, ''], `HEAD ${path}`)
    t.same(lasting(head.headers), lasting(get.headers), 'the same headers')
  }
  t.equal((await links.api()('HEAD', '/links')).status, 401, 'HEAD without a token')
}

/** The headers that two answers to one question have in common. */
function lasting({
  date: _date,
  'x-request-id': _id,
  ...headers
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return headers
}
