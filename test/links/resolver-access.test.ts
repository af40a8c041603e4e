import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import type { Backend } from '../helpers/backends.ts'
import type { Response } from '../helpers/http.ts'
import { makeLink, startLinks } from '../helpers/links-setup.ts'
import type { Caller } from '../helpers/links-setup.ts'
import { leadsTo, suggested, visit } from '../helpers/visits.ts'

const [, postgres] = backends

/** Behind a proxy on 127.0.0.1 that names who is signed in; 127.0.0.2 is somebody else. */
const PROXIED = { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32' }
const VISITORS = ['anonymous', 'stranger', 'recipient', 'owner', 'boss'] as const

type Visitor = (typeof VISITORS)[number]

function as(visitor: Visitor): { headers: Record<string, string> } {
  return { headers: visitor === 'anonymous' ? {} : { 'Remote-Email': `${visitor}@example.com` } }
}

/** One link of each visibility, each shared with the recipient and owned by the owner. */
async function startHouse(t: Test, backend: Backend) {
  const links = await startLinks(t, backend, PROXIED)
  const owner = await links.user('owner')
  await links.user('recipient')
  await links.user('boss', { admin: true })
  for (const visibility of ['public', 'private', 'secure']) {
    const fields = { url: `https://${visibility}.test/`, visibility, append_path: true }
    const link = await makeLink(owner, `house-${visibility}`, fields)
    await owner.api('POST', `/links/${link.id}/shares`, { email: 'recipient@example.com' })
  }
  return { ...links, owner }
}

await onPostgres(t, 'who is redirected', async (t: Test, backend) => {
  const { base } = await startHouse(t, backend)
  const expected = {
    'house-public': { anonymous: 302, stranger: 302, recipient: 302, owner: 302, boss: 302 },
    'house-private': { anonymous: 302, stranger: 302, recipient: 302, owner: 302, boss: 302 },
    'house-secure': { anonymous: 403, stranger: 403, recipient: 302, owner: 302, boss: 302 },
    'house-public+': { anonymous: 200, stranger: 200, recipient: 200, owner: 200, boss: 200 },
    'house-private+': { anonymous: 404, stranger: 200, recipient: 200, owner: 200, boss: 200 },
    'house-secure+': { anonymous: 403, stranger: 403, recipient: 200, owner: 200, boss: 200 },
    House_Secure: { anonymous: 403, stranger: 403, recipient: 302, owner: 302, boss: 302 },
    'house-secure/x?y=1': { anonymous: 403, stranger: 403, recipient: 302, owner: 302, boss: 302 },
  }
  for (const [path, statuses] of Object.entries(expected)) {
    for (const visitor of VISITORS) {
      for (const method of ['GET', 'HEAD', 'GET']) {
        const answer = await visit(base, `/${path}`, { method, ...as(visitor) })
        t.equal(answer.status, statuses[visitor], `${method} ${path} by ${visitor}`)
        t.equal(answer.headers['cache-control'], 'no-store')
        t.equal(answer.headers['x-robots-tag'], 'noindex')
        t.equal(answer.headers.location === undefined, answer.status !== 302)
      }
    }
  }
})

await t.test('a secure link keeps to itself where it leads', async (t) => {
  const { base, owner, server } = await startHouse(t, postgres)
  const hidden = 'hush-hush-where-it-leads'
  const { id } = await linkOf(owner, 'house-secure')
  const body = {
    url: `https://${hidden}.test/${hidden}`,
    title: hidden,
    description: hidden,
    tags: [hidden],
  }
  t.equal((await owner.api('PUT', `/links/${id}`, body)).status, 200)
  for (const path of [
    'house-secure',
    'house-secure+',
    'house-secur',
    'house-secure/x',
    'House-Secure.',
  ]) {
    for (const visitor of ['anonymous', 'stranger'] as const) {
      for (const accept of ['text/html', 'application/json']) {
        const answer = await visit(base, `/${path}`, {
          headers: { ...as(visitor).headers, accept },
        })
        t.ok([403, 404].includes(answer.status), `${path}: ${answer.status}`)
        t.notMatch(
          answer.text + answer.rawHeaders.join('\n'),
          hidden,
          `${path}, ${visitor}, ${accept}`,
        )
        if (accept === 'application/json' && answer.status === 403) {
          t.match(answer.json(), { code: 'FORBIDDEN', error: /\S/ })
        }
      }
    }
  }
  t.equal(await leadsTo(base, '/house-secure', as('owner')), `https://${hidden}.test/${hidden}`)
  t.notMatch(server.logs().join('\n'), hidden, 'nor does the log')
})

await t.test('a right counts from the next visit on', async (t) => {
  const { base, owner, api, token } = await startHouse(t, postgres)
  const { id } = await linkOf(owner, 'house-secure')
  const stranger = as('stranger')
  t.equal((await visit(base, '/house-secure', stranger)).status, 403)
  const share = await owner.api<{ id: string }>('POST', `/links/${id}/shares`, {
    email: 'stranger@example.com',
  })
  t.equal(share.status, 201, 'who was named by the proxy once is a user')
  t.equal((await visit(base, '/house-secure', stranger)).status, 302)
  t.equal((await owner.api('DELETE', `/links/${id}/shares/${share.json.id}`)).status, 204)
  t.equal((await visit(base, '/house-secure', stranger)).status, 403)
  const boss = api(await token('boss@example.com'))
  await boss('PUT', `/admin/users/${share.json.id}/role`, { role: 'admin' })
  t.equal((await visit(base, '/house-secure', stranger)).status, 302)
  await boss('PUT', `/admin/users/${share.json.id}/role`, { role: 'user' })
  t.equal((await visit(base, '/house-secure', stranger)).status, 403)
})

await t.test('the preview is a page that goes nowhere by itself', async (t) => {
  const { base, owner } = await startHouse(t, postgres)
  const url = 'https://x.test/"><script>alert(1)</script>?a=1&b=2'
  await makeLink(owner, 'hostile', { url })
  for (const path of [
    '/hostile+',
    '/Hostile+',
    '/hostile%2B',
    '/hostile+?next=1',
    '/hostile.+',
    '/hostile++',
    '/hostile+/',
  ]) {
    const page = await visit(base, path)
    t.equal(page.status, 200, path)
    t.notOk(page.headers.location ?? page.headers['refresh'])
    t.notMatch(page.text, '<script>alert')
    t.notMatch(page.text, /http-equiv/i)
    t.match(page.text, '&lt;script&gt;alert(1)&lt;/script&gt;')
    const links = [...page.text.matchAll(/(?:href|src|action)="([^"]*)"/g)].map(([, to]) => to)
    t.same(
      links.filter((to) => to?.includes('x.test')),
      [],
      'it is text there, and no link',
    )
    t.ok(links.includes('/hostile'))
  }
  t.equal((await visit(base, '/hostile/more+')).status, 404)
})

await t.test('whoever sees an open page gets its style', async (t) => {
  const { base } = await startHouse(t, postgres)
  // A foreign host name, which the pages below /-/ refuse.
  const headers = { host: 'go.elsewhere.example' }
  t.equal((await visit(base, '/-/', { headers })).status, 403)
  for (const [path, status] of [
    ['/house-public+', 200],
    ['/house-nothing', 404],
    ['/house-secure', 403],
    ['/-/', 403],
  ] as const) {
    const page = await visit(base, path, { headers })
    t.equal(page.status, status, path)
    t.equal(page.headers['cross-origin-opener-policy'], 'same-origin', path)
    t.equal(page.headers['cross-origin-resource-policy'], 'same-origin', path)
    const files = [...page.text.matchAll(/(?:src|href)="(\/-\/assets\/[^"]+)"/g)]
    t.ok(files.length >= 3, 'a style sheet, a script and an icon')
    for (const [, file = ''] of files) t.equal((await visit(base, file, { headers })).status, 200)
  }
  const explorer = await visit(base, '/api/docs/swagger-ui-bundle.js', { headers })
  t.equal(explorer.status, 403, 'the files of the explorer are for its page')
  const redirect = await visit(base, '/house-public', { headers })
  t.equal(redirect.status, 302)
  t.equal(redirect.headers['cross-origin-resource-policy'], undefined, 'others may embed a link')
  t.equal(redirect.headers['cross-origin-opener-policy'], undefined)
})

await onPostgres(t, 'did you mean: only what the visitor may see', async (t: Test, backend) => {
  const { base } = await startHouse(t, backend)
  const expected: Record<Visitor, readonly string[]> = {
    anonymous: ['house-public'],
    stranger: ['house-public'],
    recipient: ['house-public', 'house-secure', 'house-private'],
    owner: ['house-public', 'house-secure', 'house-private'],
    boss: ['house-public', 'house-secure', 'house-private'],
  }
  for (const visitor of VISITORS) {
    const page = await visit(base, '/house', as(visitor))
    t.equal(page.status, 404)
    t.same(suggested(page), expected[visitor], visitor)
    for (const hidden of ['house-private', 'house-secure']) {
      if (!expected[visitor].includes(hidden)) t.notMatch(page.text, hidden, visitor)
    }
    const create = /action="\/-\/new"/.test(page.text)
    t.equal(create, visitor !== 'anonymous', `${visitor}: a button to make it`)
  }
  for (const typo of ['house-privat', 'house-secur', 'house-privatee', 'huose-secure']) {
    for (const visitor of ['anonymous', 'stranger'] as const) {
      t.same(suggested(await visit(base, `/${typo}`, as(visitor))), [], `${typo} by ${visitor}`)
    }
    t.equal(suggested(await visit(base, `/${typo}`, as('owner'))).length, 1)
  }
  const without = (path: string, page: Response): string => page.text.replaceAll(path, '…')
  const invisible = await visit(base, '/house-private+')
  const nothing = await visit(base, '/house-nothing+')
  t.equal(without('house-private', invisible), without('house-nothing', nothing), 'no difference')
})

async function linkOf(owner: Caller, slug: string): Promise<{ readonly id: string }> {
  const { json } = await owner.api<{ links: { id: string; slug: string }[] }>('GET', '/links')
  const found = json.links.find((link) => link.slug === slug)
  if (found === undefined) throw new Error(`there is no ${slug}`)
  return found
}
