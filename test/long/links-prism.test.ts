import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import type { Response } from '../helpers/http.ts'
import { startLinks } from '../helpers/links.ts'
import type { Link } from '../helpers/links.ts'
import { openApiOf, operationsOf } from '../helpers/api.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { startPrism, violationsOf } from '../runner/prism.ts'
import { keepSecret } from '../helpers/secrets.ts'

const ID = '00000000-0000-4000-8000-000000000000'

await t.test('prism as a proxy in front of the API finds no violation', async (t: Test) => {
  const links = await startLinks(t, backends[1])
  const document = await request(`${links.base}/api/openapi.yaml`)
  const file = join(await temporaryFolder(t, 'prism'), 'openapi.yaml')
  writeFileSync(file, document.text)
  const prism = await startPrism(t, file, links.base)
  const ann = await links.user('ann', { admin: true })
  const bob = await links.user('bob')
  const succeeded = new Set<string>()

  /** A call through the proxy whose answer must have this status and be as the document has it. */
  async function call(
    id: string,
    status: number,
    [method, path]: readonly [string, string],
    body?: object,
    token: string | undefined = ann.token,
  ): Promise<Response> {
    const answer = await request(`${prism.base}/api/v1${path}`, {
      method,
      headers: {
        ...(token !== '' && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      secretShown: id === 'createToken',
    })
    t.equal(answer.status, status, `${id}: ${status}`)
    const violations = violationsOf(answer.headers['sl-violations'])
    // A call that is refused may be against the document; an answer never.
    const counted = violations.filter(({ location }) => status < 400 || location[0] === 'response')
    t.same(counted, [], `${id}: as the document has it`)
    if (status < 400) succeeded.add(id)
    return answer
  }

  const config = await call('getConfig', 200, ['GET', '/config'], undefined, '')
  t.equal(config.headers['x-content-type-options'], 'nosniff', 'it is our server that answers')
  await call('getProfile', 200, ['GET', '/users/me'])
  const fields = { url: 'https://example.com/{*}', title: 'Docs', tags: ['Team A', 'docs'] }
  const made = await call('createLink', 201, ['POST', '/links'], { slug: 'docs', ...fields })
  const link = made.json<Link>()
  const at = `/links/${link.id}`
  await call('getLink', 200, ['GET', at])
  const change = { ...fields, visibility: 'secure', append_path: true }
  await call('replaceLink', 200, ['PUT', at], change)
  await call('listLinks', 200, ['GET', '/links?limit=500'])
  await call('listAllLinks', 200, ['GET', '/admin/links?limit=1'])
  await call('listTags', 200, ['GET', '/tags'])
  await call('listTagLinks', 200, ['GET', '/tags/docs/links'])
  await call('addOwner', 201, ['POST', `${at}/owners`], { email: bob.email })
  await call('listOwners', 200, ['GET', `${at}/owners`])
  await call('removeOwner', 204, ['DELETE', `${at}/owners/${bob.id}`])
  await call('shareLink', 201, ['POST', `${at}/shares`], { email: bob.email })
  await call('listShares', 200, ['GET', `${at}/shares`])
  await call('getLink', 200, ['GET', at], undefined, bob.token)
  await call('endShare', 204, ['DELETE', `${at}/shares/${bob.id}`])
  const asked = { name: 'laptop', scope: 'read', expires_at: '2099-01-01T00:00:00Z' }
  const token = (await call('createToken', 201, ['POST', '/tokens'], asked)).json<{
    id: string
    token: string
  }>()
  keepSecret('prism-token', token.token)
  await call('listTokens', 200, ['GET', '/tokens'])
  await call('revokeToken', 204, ['DELETE', `/tokens/${token.id}`])
  await call('listUsers', 200, ['GET', '/admin/users'])
  await call('setRole', 200, ['PUT', `/admin/users/${bob.id}/role`], { role: 'admin' })
  await call('setRole', 200, ['PUT', `/admin/users/${bob.id}/role`], { role: 'user' })

  await call('listLinks', 400, ['GET', '/links?limit=0'])
  await call('listLinks', 401, ['GET', '/links'], undefined, '')
  await call('listUsers', 403, ['GET', '/admin/users'], undefined, bob.token)
  await call('getLink', 400, ['GET', '/links/1'])
  await call('getLink', 404, ['GET', `/links/${ID}`])
  await call('getLink', 403, ['GET', at], undefined, bob.token)
  await call('createLink', 409, ['POST', '/links'], { slug: 'docs', ...fields })
  await call('setRole', 409, ['PUT', `/admin/users/${ann.id}/role`], { role: 'user' })
  await call('createLink', 400, ['POST', '/links'], { slug: 'api', ...fields })
  await call('createLink', 413, ['POST', '/links'], { slug: 'x1', url: 'x'.repeat(70_000) })
  await call('removeOwner', 400, ['DELETE', `${at}/owners/${ann.id}`])
  await call('listTagLinks', 404, ['GET', '/tags/none/links'])
  await call('deleteLink', 204, ['DELETE', at])

  const all = operationsOf(openApiOf(document.text)).map(({ operation }) => operation.operationId)
  t.same([...succeeded].toSorted(), all.toSorted(), 'every operation was called')
})

await t.test('prism says what is not as the document has it', async (t: Test) => {
  const links = await startLinks(t, backends[1])
  const { text } = await request(`${links.base}/api/openapi.yaml`)
  const file = join(await temporaryFolder(t, 'prism'), 'openapi.yaml')
  const wrong = text.replace(
    'short_keyword:\n          type: string',
    'short_keyword:\n          type: integer',
  )
  t.not(wrong, text)
  writeFileSync(file, wrong)
  const prism = await startPrism(t, file, links.base)
  const answer = await request(`${prism.base}/api/v1/config`)
  t.match(violationsOf(answer.headers['sl-violations']), [
    { location: ['response', 'body', 'short_keyword'], code: 'type' },
  ])
})
